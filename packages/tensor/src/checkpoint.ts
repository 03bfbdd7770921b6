import { scope } from './scope.ts'
import { activeTape, Tape } from './tape.ts'
import { type Tensor, viewOf } from './tensor.ts'

/**
 * Runs `body` without keeping what its backward needs, and runs it again in the backward: memory for time. Gradients have the same bits as
 * without.
 *
 * `body` must be pure: equal inputs give equal results, and it takes every tensor that needs gradients as an argument (parameters it may use
 * freely).
 */
export function checkpoint<T extends Tensor | readonly Tensor[]>(body: (...inputs: Tensor[]) => T, ...inputs: readonly Tensor[]): T {
  const tape = activeTape()
  if (tape === null) return body(...inputs)
  const probe = new Tape(tape, inputs)
  const result = probe.run(() => scope(() => body(...inputs)))
  if (!probe.probeFound) return result
  const outputs = listOf(result)
  // A result that is an argument would carry two slots: such a body returns it as a view of its own.
  const fresh = outputs.map((output) => (inputs.includes(output) ? viewOf(output, output.shape, output.strides, 0) : output))
  const slots = inputs.map((input) => input.slot)
  tape.add('checkpoint', inputs, fresh, inputs, (step) => {
    const again = new Tape(tape)
    try {
      const arguments_ = inputs.map((_, index) => {
        const held = step.held(index)
        if (slots[index]?.currentValue !== undefined) return held
        const alias = viewOf(held, held.shape, held.strides, 0)
        // The slot of the outer tape itself: gradients are added there in the order in which they would have been without a checkpoint.
        alias.slot = slots[index] ?? null
        return alias
      })
      const results = listOf(again.run(() => body(...arguments_)))
      const seeds = results.flatMap((output, index) => {
        const gradient = step.gradientOrNull(index)
        return gradient === null || output.slot === null ? [] : [{ output, gradient }]
      })
      again.backward(seeds)
    } finally {
      again.end()
    }
  })
  return (Array.isArray(result) ? fresh : fresh[0]) as T
}

function listOf(result: Tensor | readonly Tensor[]): readonly Tensor[] {
  return Array.isArray(result) ? result : [result as Tensor]
}
