import { muonStep } from '@trilithon/native'
import { scope } from '../scope.ts'
import { type AdamWOptions, createAdamW } from './adamw.ts'
import { gradientOf, type Optimiser, type Trainable, trainablesOf, zeroStates } from './optimiser.ts'

export interface MuonOptions {
  readonly weightDecay: number
  /** Decay of the velocity of matrices. */
  readonly momentum: number
  /** Of what is no matrix. */
  readonly adamw: Omit<AdamWOptions, 'weightDecay'>
  /** Looks ahead by the momentum. */
  readonly isNesterov?: boolean
  /** 1e-8 unless said otherwise. */
  readonly epsilon?: number
  /** What is made orthogonal. As in prime-rl unless said otherwise: two dims or more, and neither embedding nor head. */
  readonly isMatrix?: (trainable: Trainable) => boolean
}

const isHiddenMatrix = ({ name, value }: Trainable) => value.rank >= 2 && !/lm_head|embed_tokens/.test(name)

/**
 * Orthogonalised momentum for matrices (of experts [experts, rows, columns] for each), Adam for the rest. The update of a matrix has the root mean square
 * of dion's rule "rms_norm". States: `muon.velocity.*` and those of AdamW.
 */
export function createMuon(parameters: Iterable<Trainable>, options: MuonOptions): Optimiser {
  const { weightDecay, momentum, adamw, isNesterov = false, epsilon = 1e-8, isMatrix = isHiddenMatrix } = options
  const trainables = trainablesOf(parameters)
  const matrices = trainables.filter(isMatrix)
  const velocities = zeroStates('muon.velocity', matrices)
  const rest = createAdamW(
    trainables.filter((trainable) => !isMatrix(trainable)),
    { weightDecay, ...adamw },
  )
  return {
    states: [...velocities, ...rest.states],
    step(step) {
      const { learningRate, gradientScale = 1 } = step
      scope(() => {
        // Every gradient is looked at before anything changes.
        const gradients = matrices.map((trainable, index) => ({
          value: trainable.value,
          gradient: gradientOf(trainable),
          velocity: velocities[index]?.tensor,
        }))
        rest.step(step)
        for (const { value, gradient, velocity } of gradients) {
          if (velocity === undefined) continue
          muonStep({
            param: value.handle,
            gradient: gradient.handle,
            velocity: velocity.handle,
            learningRate,
            updateRate: learningRate * 0.2 * Math.sqrt(Math.max(value.dim(-2), value.dim(-1))),
            momentum,
            weightDecay,
            epsilon,
            gradientScale,
            nesterov: isNesterov,
          })
          for (const tensor of [value, velocity]) tensor.writes++
        }
      })
    },
    dispose() {
      rest.dispose()
      for (const { tensor } of velocities) tensor.dispose()
    },
  }
}
