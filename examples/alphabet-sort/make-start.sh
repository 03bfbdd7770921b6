#!/bin/sh
# Makes the model that examples/alphabet-sort/rl.toml starts from: random weights, conversations whose answers have the right words in an order drawn at random, supervised
# training on them, and the mean reward at temperature 1 and 0. The seed of weights and data is the first argument, 0 where there is none.
set -eu
cd "$(dirname "$0")/../.."
seed=${1:-0}
work=outputs/alphabet-sort
args='{"min_words": 2, "max_words": 2, "min_length": 1, "max_length": 2}'
rm -rf "$work"
./trilithon init-model examples/alphabet-sort/config.json --init fan --tokenizer chars --alphabet abcdefghijklmnop, --seed "$seed" --out "$work/model"
./trilithon alphabet-sort rows --seed "$seed" --args "$args" --count 50000 --out "$work/train.jsonl"
./trilithon alphabet-sort rows --seed "$seed" --args "$args" --count 512 --split held-out --out "$work/validation.jsonl"
./trilithon sft @ examples/alphabet-sort/sft.toml --clean-output-dir
./trilithon eval @ examples/alphabet-sort/rl.toml --checkpoint outputs/alphabet-sort-sft/weights/step_1200
./trilithon eval @ examples/alphabet-sort/rl.toml --checkpoint outputs/alphabet-sort-sft/weights/step_1200 --orchestrator.eval.sampling.temperature 0
