import type { TrainingMode } from '@trilithon/core'
import { type CustomLossOptions, loadCustomLoss } from './custom-loss.ts'
import type { Loss } from './loss.ts'
import { createDefaultLoss, createIpoLoss, type DefaultLossOptions, type IpoLossOptions, opdLoss, sftLoss } from './policy-loss.ts'

/** The table `trainer.loss`, parsed. */
export type LossChoice =
  | ({ readonly type: 'default' } & DefaultLossOptions)
  | ({ readonly type: 'ipo' } & IpoLossOptions)
  | ({ readonly type: 'custom' } & Omit<CustomLossOptions, 'folder'>)

/** The loss of each training mode. The configuration chooses that of rl only. `folder` is where a relative `import_path` starts. */
export async function createLosses(choice: LossChoice, folder: string): Promise<Readonly<Record<TrainingMode, Loss>>> {
  return { rl: await createRlLoss(choice, folder), opd: opdLoss, sft: sftLoss }
}

function createRlLoss(choice: LossChoice, folder: string): Loss | Promise<Loss> {
  switch (choice.type) {
    case 'default':
      return createDefaultLoss(choice)
    case 'ipo':
      return createIpoLoss(choice)
    case 'custom':
      return loadCustomLoss({ ...choice, folder })
  }
}
