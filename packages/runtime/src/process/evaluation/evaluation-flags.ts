import type { RlConfiguration } from '../../roots/rl-configuration.ts'

/**
 * Flags that turn the configuration of a run into that of an evaluation: every role has the model that is evaluated, there are no checkpoints and no steps, and the
 * folder is its own.
 */
export function evaluationFlags({
  model,
  folder,
  port,
  host,
}: {
  readonly model: string | null
  readonly folder: string
  readonly port: number
  readonly host: string | null
}): string[] {
  const models = ['model', 'trainer.model', 'orchestrator.student.model', 'inference.model']
  const names = model === null ? [] : models.map((table) => `--${table}.name=${model}`)
  const [run, orchestrator] = [folder, `${folder}/run_default`]
  return [
    ...names,
    `--output-dir=${run}`,
    `--trainer.output-dir=${run}`,
    `--orchestrator.output-dir=${orchestrator}`,
    `--inference.server.port=${port}`,
    `--orchestrator.student.client.base-url=${JSON.stringify([`http://${urlHost(host)}:${port}/v1`])}`,
  ]
}

/** The configuration as the orchestrator evaluates with it: its engines are those that are started for it, one URL each. */
export function evaluationConfiguration(
  config: RlConfiguration['orchestrator'],
  ports: readonly number[],
  host: string | null,
): RlConfiguration['orchestrator'] {
  const { student } = config
  const client = {
    ...student.client,
    base_url: ports.map((port) => `http://${urlHost(host)}:${port}/v1`),
    ...{ admin_base_url: null, router_url: null, dp_rank_count: 1, elastic: null },
  }
  return { ...config, ckpt: null, student: { ...student, client } }
}

function urlHost(host: string | null): string {
  if (host === null || host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
