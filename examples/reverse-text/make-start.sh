#!/bin/sh
# Makes the model that examples/reverse-text/rl.toml starts from: random weights, rows with a little and then with much noise, supervised training on them
# in that order, and the mean reward. The seed of weights and data is the first argument, 0 where there is none.
set -eu
cd "$(dirname "$0")/../.."
seed=${1:-0}
work=outputs/reverse-text
rm -rf "$work"
./trilithon init-model examples/reverse-text/config.json --tokenizer chars --seed "$seed" --out "$work/model"
./trilithon reverse-text rows --seed "$seed" --noise 0.1 --count 24000 --out "$work/clear.jsonl"
./trilithon reverse-text rows --seed "$((seed + 100))" --noise 0.85 --count 6000 --out "$work/blurred.jsonl"
cat "$work/clear.jsonl" "$work/blurred.jsonl" >"$work/train.jsonl"
./trilithon reverse-text rows --seed "$seed" --noise 0.85 --count 512 --split held-out --out "$work/validation.jsonl"
./trilithon sft @ examples/reverse-text/sft.toml --clean-output-dir
./trilithon reverse-text measure outputs/reverse-text-sft/weights/step_424
./trilithon reverse-text measure outputs/reverse-text-sft/weights/step_424 --temperature 0
