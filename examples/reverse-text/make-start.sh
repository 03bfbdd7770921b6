#!/bin/sh
# Makes the model that examples/reverse-text/rl.toml starts from: random weights, data with noise, supervised training, and its mean reward.
# The seed of weights and data is the first argument, 0 where there is none.
set -eu
cd "$(dirname "$0")/../.."
seed=${1:-0}
work=outputs/reverse-text
rm -rf "$work"
./trilithon init-model examples/reverse-text/config.json --tokenizer chars --seed "$seed" --out "$work/model"
./trilithon reverse-text rows --seed "$seed" --noise 0.7 --count 16384 --out "$work/train.jsonl"
./trilithon reverse-text rows --seed "$seed" --noise 0.7 --count 512 --split held-out --out "$work/validation.jsonl"
./trilithon sft @ examples/reverse-text/sft.toml --clean-output-dir
./trilithon reverse-text measure outputs/reverse-text-sft/weights/step_360
