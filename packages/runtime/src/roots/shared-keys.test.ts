import { expect, test } from 'vitest'
import { sharedKeys } from './shared-keys.ts'

const targetsOf = (from: string) => sharedKeys.filter((shared) => shared.from === from).flatMap(({ to }) => to)

test.each([
  ['model.name', ['trainer.model.name', 'orchestrator.student.model.name', 'inference.model.name']],
  ['model.vlm', ['trainer.model.vlm', 'orchestrator.student.model.vlm', 'inference.model.vlm']],
  ['log.level', ['trainer.log.level', 'orchestrator.log.level', 'inference.log.level']],
  ['log.json_logging', ['trainer.log.json_logging', 'orchestrator.log.json_logging', 'inference.log.json_logging']],
  ['ckpt', ['trainer.ckpt', 'orchestrator.ckpt']],
  ['ckpt.output_dir', ['trainer.ckpt.output_dir']],
  ['ckpt.interval', ['trainer.ckpt.interval', 'orchestrator.ckpt.interval']],
  ['ckpt.resume_step', ['trainer.ckpt.resume_step', 'orchestrator.ckpt.resume_step']],
  ['ckpt.keep_last', ['trainer.ckpt.keep_last', 'orchestrator.ckpt.keep_last']],
  ['ckpt.keep_interval', ['trainer.ckpt.keep_interval', 'orchestrator.ckpt.keep_interval']],
  ['wandb', ['trainer.wandb', 'orchestrator.wandb']],
  ['tokenizer.name', ['trainer.tokenizer.name', 'orchestrator.tokenizer.name']],
  ['tokenizer.trust_remote_code', ['trainer.tokenizer.trust_remote_code', 'orchestrator.tokenizer.trust_remote_code']],
  ['tokenizer.chat_template', ['trainer.tokenizer.chat_template', 'orchestrator.tokenizer.chat_template', 'inference.model.chat_template']],
  ['trainer.tokenizer.chat_template', ['inference.model.chat_template']],
  ['max_steps', ['trainer.max_steps', 'orchestrator.max_steps']],
  ['seq_len', ['trainer.model.seq_len', 'orchestrator.seq_len']],
  ['rollout_transport', ['trainer.rollout_transport', 'orchestrator.rollout_transport']],
  ['slurm', ['inference.slurm']],
  ['inference.deployment.router.type', ['orchestrator.router.type', 'orchestrator.router.type']],
  ['output_dir', ['trainer.output_dir', 'orchestrator.output_dir']],
  ['weight_broadcast.type', ['trainer.weight_broadcast.type', 'orchestrator.weight_broadcast.type', 'inference.weight_broadcast.type']],
  ['weight_broadcast.port', ['trainer.weight_broadcast.port', 'orchestrator.weight_broadcast.port']],
  ['numerics_profile', ['trainer.numerics_profile', 'inference.numerics_profile']],
  ['bench', ['orchestrator.bench', 'trainer.bench']],
])('%s goes to %j', (from, to) => {
  expect(targetsOf(from)).toEqual(to)
})

test('the orchestrator writes inside the folder of the run', () => {
  expect(sharedKeys.find(({ to }) => to.includes('orchestrator.output_dir'))?.as).toBe('{value}/run_default')
})
