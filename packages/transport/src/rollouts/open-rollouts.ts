import { basename, dirname } from 'node:path'
import type { Logger, RolloutTransport } from '@trilithon/core'
import { createRolloutReceiver, type RolloutReceiver } from './rollout-receiver.ts'
import { createRolloutSender, type RolloutSender } from './rollout-sender.ts'
import { createZmqRolloutReceiver } from './zmq/zmq-rollout-receiver.ts'
import { createZmqRolloutSender } from './zmq/zmq-rollout-sender.ts'

export interface OpenRolloutsOptions {
  /** The table `rollout_transport`, the same on both sides. */
  readonly transport: RolloutTransport
  /** The orchestrator's folder of that name. A receiver over sockets takes the name of the run from it and reads nothing there. */
  readonly rollouts: string
  /** The first batch that is to be trained. */
  readonly firstStep: number
  readonly log?: Logger
}

/** The orchestrator's end. */
export async function openRolloutSender({ transport, rollouts, ...more }: OpenRolloutsOptions): Promise<RolloutSender> {
  return transport.type === 'filesystem' ? createRolloutSender(rollouts) : createZmqRolloutSender(rollouts, { ...transport, ...more })
}

/** The trainer's end. Throws `PORT_IN_USE` and `CONFIG_VALUE_INVALID` where it cannot be listened. */
export async function openRolloutReceiver({ transport, rollouts, firstStep, log }: OpenRolloutsOptions): Promise<RolloutReceiver> {
  if (transport.type === 'filesystem') return createRolloutReceiver(rollouts, firstStep)
  return createZmqRolloutReceiver({ ...transport, firstStep, run: basename(dirname(rollouts)), ...(log === undefined ? {} : { log }) })
}
