/**
 * A key at the top of an `rl` file that other roots take over. All of it happens on the written tree, before any schema, after the moves of every
 * root; entries apply in order.
 *
 * For each target whose first part (`trainer`, `orchestrator`, `inference`) is a table in the tree, and only for those:
 * - nothing is written there: the value is written there, with the source of the shared key; tables in between are created;
 * - an equal value is written there: nothing happens;
 * - another value is written there, or a null on the way: a conflict. All conflicts of all entries are one error.
 *
 * A shared value that is null is not taken over. A table is taken over key by key, and an empty one as an empty table.
 */
export interface SharedKey {
  readonly from: string
  readonly to: readonly string[]
  /** Applies only where this value is written at `at`. */
  readonly when?: { readonly at: string; readonly is: string | boolean }
  /** Written instead of the value itself; `{value}` in a text stands for it. */
  readonly as?: string | Readonly<Record<string, never>>
  /** Only that the table is there is taken over: an empty table is written where nothing is, and there is no conflict. */
  readonly presence?: true
  /** A different value at the target is left alone. */
  readonly yields?: true
}

const all = ['trainer', 'orchestrator', 'inference'] as const
const trainerAndOrchestrator = ['trainer', 'orchestrator'] as const
const below = (tables: readonly string[], key: string) => tables.map((table) => `${table}.${key}`)

const models = ['trainer.model', 'orchestrator.student.model', 'inference.model']
const nccl = { at: 'weight_broadcast.type', is: 'nccl' } as const

export const sharedKeys: readonly SharedKey[] = [
  { from: 'plugins', to: below(all, 'plugins') },
  { from: 'numerics_profile', to: below(['trainer', 'inference'], 'numerics_profile') },
  { from: 'model.name', to: below(models, 'name') },
  { from: 'model.vlm', to: below(models, 'vlm') },
  { from: 'log.level', to: below(all, 'log.level') },
  { from: 'log.json_logging', to: below(all, 'log.json_logging') },
  { from: 'ckpt', to: below(trainerAndOrchestrator, 'ckpt'), presence: true },
  { from: 'ckpt.output_dir', to: ['trainer.ckpt.output_dir'] },
  ...['interval', 'resume_step', 'keep_last', 'keep_interval'].map(
    (key): SharedKey => ({ from: `ckpt.${key}`, to: below(trainerAndOrchestrator, `ckpt.${key}`) }),
  ),
  { from: 'wandb', to: below(trainerAndOrchestrator, 'wandb') },
  { from: 'tokenizer.name', to: below(trainerAndOrchestrator, 'tokenizer.name') },
  { from: 'tokenizer.trust_remote_code', to: below(trainerAndOrchestrator, 'tokenizer.trust_remote_code') },
  {
    from: 'tokenizer.chat_template',
    to: [...below(trainerAndOrchestrator, 'tokenizer.chat_template'), 'inference.model.chat_template'],
  },
  { from: 'trainer.tokenizer.chat_template', to: ['inference.model.chat_template'], yields: true },
  { from: 'max_steps', to: below(trainerAndOrchestrator, 'max_steps') },
  { from: 'seq_len', to: ['trainer.model.seq_len', 'orchestrator.seq_len'] },
  { from: 'weight_broadcast.type', to: below(all, 'weight_broadcast.type') },
  ...['port', 'timeout', 'quantize_in_weight_transfer'].map(
    (key): SharedKey => ({ from: `weight_broadcast.${key}`, to: below(trainerAndOrchestrator, `weight_broadcast.${key}`), when: nccl }),
  ),
  { from: 'rollout_transport', to: below(trainerAndOrchestrator, 'rollout_transport') },
  { from: 'slurm', to: ['inference.slurm'] },
  // A router process before engines of several nodes: the orchestrator's own router is its, unless it says otherwise.
  ...[
    { at: 'deployment.type', is: 'multi_node' },
    { at: 'inference.deployment.type', is: 'disaggregated' },
  ].map((when): SharedKey => ({ from: 'inference.deployment.router.type', to: ['orchestrator.router.type'], when, yields: true })),
  { from: 'output_dir', to: ['trainer.output_dir'] },
  { from: 'output_dir', to: ['orchestrator.output_dir'], as: '{value}/run_default' },
  { from: 'bench', to: ['orchestrator.bench'], when: { at: 'bench', is: true } },
  { from: 'bench', to: ['trainer.bench'], when: { at: 'bench', is: true }, as: {}, presence: true },
]
