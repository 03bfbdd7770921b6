/** One step of a backward: what the gradient function of an op sees, and how its results are summed. */
import { addInto, addTensors } from './add-gradients.ts'
import type { Lifetime } from './owned.ts'
import { refuse } from './refuse.ts'
import { keep, scope } from './scope.ts'
import { describeShape, emptyLike, type GradientSlot, type Tensor, viewOf, zeros } from './tensor.ts'

/** The slot of a tensor that a tape marked. */
export class Slot implements GradientSlot {
  readonly source: object
  readonly dtype: Tensor['dtype']
  readonly shape: readonly number[]
  gradient: Tensor | null = null
  isExclusive = true
  isKept = false

  constructor(source: object, tensor: Tensor) {
    this.source = source
    this.dtype = tensor.dtype
    this.shape = tensor.shape
  }
}

/** Something that the backward reads again. A parameter is asked for its value when it is needed: it may have been given back in between. */
interface Hold {
  readonly tensor: Tensor | null
  readonly parameter: (() => Tensor) | null
  /** Overwriting memory between forward and backward would give wrong gradients: it is noticed by this count. */
  readonly memory: Tensor['memory']
  readonly writes: number
}

export interface RecordedStep {
  readonly name: string
  readonly inputs: readonly (GradientSlot | null)[]
  readonly outputs: readonly (GradientSlot | null)[]
  readonly holds: readonly (Hold | null)[]
  readonly owned: Lifetime
  readonly backward: (step: BackwardStep) => void
}

interface Target {
  readonly slot: GradientSlot
  readonly tensor: Tensor
  readonly isExclusive: boolean
}

export class BackwardStep {
  private readonly step: RecordedStep
  /** Gradients of this step that are to be added when it has run. */
  private readonly targets: Target[] = []

  private constructor(step: RecordedStep) {
    this.step = step
  }

  /** Sets the gradients that a backward starts from. */
  static seed(seeds: readonly { readonly output: Tensor; readonly gradient: Tensor }[]): void {
    for (const { output, gradient } of seeds)
      if (output.slot !== null) addTo({ slot: output.slot, tensor: shareOf(gradient), isExclusive: false })
  }

  /** Runs a step unless no gradient reaches it, and frees what it held. */
  static run(step: RecordedStep): void {
    try {
      if (step.outputs.length === 0 || step.outputs.some((slot) => slot?.gradient)) {
        const backward = new BackwardStep(step)
        scope(() => {
          step.backward(backward)
          for (const target of backward.targets) addTo(target)
        })
      }
    } finally {
      BackwardStep.free(step)
    }
  }

  /** Frees what a step held, and the gradients of its outputs. */
  static free(step: RecordedStep): void {
    for (const hold of step.holds) hold?.tensor?.unhold()
    step.owned.end()
    for (const slot of step.outputs) {
      if (slot === null || slot.isKept || slot.gradient === null) continue
      slot.gradient.dispose()
      slot.gradient = null
    }
  }

  /** What the op held, in that order; it was held, so it is there. */
  held(index: number): Tensor {
    return this.heldOrNull(index) ?? refuse(this.step.name, 'held', 'a held tensor', `nothing at ${index}`)
  }

  heldOrNull(index: number): Tensor | null {
    const hold = this.step.holds[index]
    if (hold === null || hold === undefined) return null
    const tensor = hold.tensor?.heldTensor ?? hold.parameter?.() ?? null
    // A parameter that was gathered again has other memory, for which its gathering answers.
    if (tensor !== null && tensor.memory === hold.memory && tensor.writes !== hold.writes)
      refuse(this.step.name, 'backward', 'tensors as they were in the forward', `${describeShape(tensor)} that was overwritten since`)
    return tensor
  }

  /** Gradient of an output; zeros where none reached it. */
  gradient(output: number): Tensor {
    const slot = this.step.outputs[output]
    if (slot === null || slot === undefined) refuse(this.step.name, 'output', 'a differentiable output', `output ${output}`)
    return slot.gradient ?? zeros(slot.dtype, slot.shape)
  }

  gradientOrNull(output: number): Tensor | null {
    return this.step.outputs[output]?.gradient ?? null
  }

  /** Whether the gradient of an input is asked for. */
  needs(input: number): boolean {
    return (this.step.inputs[input] ?? null) !== null
  }

  /** A tensor that the op writes the gradient of an input to. `like` says the shape where that input needs none and the op writes one anyway. */
  fresh(input: number, like: Tensor): Tensor {
    return this.freshOrNull(input) ?? this.unasked(input, like)
  }

  /** Where an op writes a gradient that nobody asked for. */
  private unasked(input: number, like: Tensor | undefined): Tensor {
    return emptyLike(like ?? refuse(this.step.name, 'gradient', 'a tensor that says the shape', `none for input ${input}`))
  }

  /** As `fresh`, or null where the input needs no gradient. */
  freshOrNull(input: number): Tensor | null {
    const slot = this.step.inputs[input] ?? null
    if (slot === null) return null
    const tensor = emptyLike(slot)
    this.targets.push({ slot, tensor, isExclusive: true })
    return tensor
  }

  /**
   * For ops that can add to gradients, with one flag for all of `inputs`: the sums so far where each has one, otherwise new tensors to be set.
   * `like` says the shapes where an input needs no gradient and the op writes one anyway.
   */
  into(inputs: readonly number[], like: readonly Tensor[] = []): { readonly tensors: readonly Tensor[]; readonly accumulate: boolean } {
    const slots = inputs.map((input) => this.step.inputs[input] ?? null)
    const sums = slots.map((slot) => (slot?.isExclusive === true ? slot.gradient : null))
    const isDistinct = new Set(slots).size === slots.length
    if (isDistinct && sums.every((sum) => sum !== null)) return { tensors: sums as readonly Tensor[], accumulate: true }
    return { tensors: inputs.map((input, index) => this.freshOrNull(input) ?? this.unasked(input, like[index])), accumulate: false }
  }

  /** The gradient of an input is this tensor, whose memory may be in use elsewhere. */
  pass(input: number, gradient: Tensor): void {
    const slot = this.step.inputs[input] ?? null
    if (slot !== null) this.targets.push({ slot, tensor: shareOf(gradient), isExclusive: false })
  }

  /** Adds `gradient` to the part of an input's gradient that `partOf` cuts out; the rest of it stays, zeros at first. */
  addInto(input: number, partOf: (total: Tensor) => Tensor, gradient: Tensor): void {
    const slot = this.step.inputs[input] ?? null
    if (slot === null) return
    if (slot.gradient === null || !slot.isExclusive) addTo({ slot, tensor: zeros(slot.dtype, slot.shape), isExclusive: true })
    addInto(partOf(slot.gradient as unknown as Tensor), gradient)
  }
}

/** A handle of its own to the same memory, so that the two may end apart. */
function shareOf(gradient: Tensor): Tensor {
  return viewOf(gradient, gradient.shape, gradient.strides, 0)
}

/** Adds to the gradient of a slot, which takes the tensor over where it has none. */
function addTo({ slot, tensor, isExclusive }: Target): void {
  if (slot.gradient === null) {
    slot.gradient = keep(tensor)
    slot.isExclusive = isExclusive
  } else if (slot.isExclusive) {
    addInto(slot.gradient, tensor)
    tensor.dispose()
  } else {
    const sum = keep(addTensors(slot.gradient, tensor))
    slot.gradient.dispose()
    tensor.dispose()
    slot.gradient = sum
    slot.isExclusive = true
  }
}
