import type { ConfigurationNotice } from '@trilithon/core'
import { inferencePluginKeys, onlyHereTogether } from '@trilithon/inference/configuration'
import { modelPluginKeys } from '@trilithon/trainer/configuration'
import { type BroadcastKeys, multiNode, type RlConfiguration, rlPluginKeys } from './rl-configuration.ts'

/** What is worth knowing of a run as a whole. */
export function* rlNotices(config: RlConfiguration): Iterable<ConfigurationNotice> {
  yield* permittedHere(config)
  yield* unusedKeys(config)
  const { routerReplay, trainerLora } = rlPluginKeys(config)
  if (config.inference !== null) return
  if (routerReplay) yield 'trainer.enable_router_replay needs engines that answer with their experts (enable_return_routed_experts).'
  if (trainerLora !== null) yield 'trainer.model.lora needs engines that serve adapters (enable_lora, max_lora_rank).'
}

/** Combinations that prime-rl 0.6.0 refuses and that work here. */
function* permittedHere(config: RlConfiguration): Iterable<ConfigurationNotice> {
  const { inference } = config
  if (inference === null) return
  if (rlPluginKeys(config).routerReplay && inferencePluginKeys(inference).kv_cache_offload !== null)
    yield 'Router replay with inference.kv_cache_offload is refused by prime-rl 0.6.0; here a KV block carries the experts of its tokens.'
  yield* onlyHereTogether(inference, multiNode(config) === undefined)
}

/** Written keys of the launcher that another key makes useless, and why the launcher changes others. */
function* unusedKeys(config: RlConfiguration): Iterable<ConfigurationNotice> {
  const { trainer, inference, weight_broadcast } = config
  if ((weight_broadcast?.type ?? 'filesystem') !== 'nccl')
    for (const key of ['port', 'timeout'])
      yield { path: `weight_broadcast.${key}`, message: 'Files need neither port nor timeout; type "nccl" does.', unused: true }
  if (multiNode(config) !== undefined && (trainer.weight_broadcast as BroadcastKeys).type === 'nccl')
    yield { path: 'trainer.weight_broadcast.host', message: 'On several nodes the trainer listens on all addresses.' }
  if (inference === null) {
    yield { path: 'max_inference_restarts', message: 'This run starts no engine.', unused: true }
    return
  }
  if (rlPluginKeys(config).routerReplay)
    yield { path: 'inference.enable_return_routed_experts', message: 'Router replay needs engines that answer with their experts.' }
  if (modelPluginKeys(trainer.model).lora !== null) {
    const message = 'Inference serves the adapters that the trainer trains, from one HTTP process.'
    for (const key of ['enable_lora', 'max_lora_rank', 'api_server_count']) yield { path: `inference.${key}`, message }
  }
}
