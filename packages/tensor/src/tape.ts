/**
 * The tape: what was computed in a step, and how gradients flow back through it.
 *
 * It is define-by-run and explicit. Nothing is recorded outside `record`, and only what a parameter or a watched tensor takes part in. Gradients
 * are summed in one fixed order, that of the steps in reverse, so a repetition gives the same bits.
 */
import { BackwardStep, type RecordedStep, Slot } from './backward-step.ts'
import { Lifetime } from './owned.ts'
import { refuse } from './refuse.ts'
import { scope } from './scope.ts'
import { describeShape, fromArray, type GradientSlot, type Tensor, viewOf } from './tensor.ts'

/** A tensor that a backward starts from, with its gradient. */
export interface BackwardSeed {
  readonly output: Tensor
  /** Of the same shape and dtype. */
  readonly gradient: Tensor
}

/** What records now; ops ask `recorder`. */
let active: Tape | null = null

/** The tape that an op with these inputs must add its step to; null when none records, or when no gradient reaches any of them. */
export function recorder(...inputs: readonly (Tensor | null | undefined)[]): Tape | null {
  return active === null ? null : active.recorderOf(inputs)
}

/** For ops that no gradient flows through: refuses a tensor that the tape would have to differentiate. */
export function refuseRecording(op: string, argument: string, tensor: Tensor): void {
  if (recorder(tensor) !== null) refuse(op, argument, 'a detached tensor: no gradient flows through this op', describeShape(tensor))
}

/** The tape that records now, whatever the inputs are. */
export function activeTape(): Tape | null {
  return active?.isProbe === true ? null : active
}

/** Whether the body of a checkpoint runs now, for the first time or again. */
export function isInsideCheckpoint(): boolean {
  return active !== null && (active.isProbe || active.isNested)
}

export class Tape {
  /** Only looks whether a gradient reaches an op, and records nothing: the first run of a checkpointed function. */
  readonly isProbe: boolean
  /** What a probe may take part in from outside, and whether anything did. */
  private readonly probed: { readonly allowed: readonly Tensor[]; found: boolean } | null
  private readonly parent: Tape | null
  private readonly steps: RecordedStep[] = []
  private readonly endings: (() => void)[] = []
  /** Tensors that carry a slot of this tape. */
  private readonly marked: Tensor[] = []
  private isConsumed = false

  constructor(parent: Tape | null = null, probe: readonly Tensor[] | null = null) {
    this.parent = parent
    this.isProbe = probe !== null
    this.probed = probe === null ? null : { allowed: probe, found: false }
  }

  /** For checkpoints: whether a gradient reaches anything that the probe saw. */
  get probeFound(): boolean {
    return this.probed?.found === true
  }

  /** Records the second run of a checkpointed function, within the backward of another tape. */
  get isNested(): boolean {
    return this.parent !== null
  }

  recorderOf(inputs: readonly (Tensor | null | undefined)[]): Tape | null {
    for (const input of inputs) {
      if (input === null || input === undefined || input.slot === null) continue
      this.check(input, input.slot)
      if (this.probed === null) return this
      this.probed.found = true
    }
    return null
  }

  private check(input: Tensor, slot: GradientSlot): void {
    if (slot.currentValue !== undefined) return
    if (this.probed !== null) {
      if (this.probed.allowed.includes(input)) return
      refuse(
        'checkpoint',
        'body',
        'tensors that need gradients as arguments of the function',
        `${describeShape(input)} that it closes over`,
      )
    }
    for (let tape: Tape | null = this; tape !== null; tape = tape.parent) if (slot.source === tape) return
    refuse('record', 'input', 'a tensor of this tape, a parameter or a detached tensor', `${describeShape(input)} of another tape`)
  }

  /**
   * Records a step. `held` is what the backward reads again: it stays readable however its owner disposes it, and what is neither input nor
   * output belongs to the tape from now on.
   */
  add(
    name: string,
    inputs: readonly (Tensor | null | undefined)[],
    outputs: readonly Tensor[],
    held: readonly (Tensor | null | undefined)[],
    backward: (step: BackwardStep) => void,
  ): void {
    const owned = new Lifetime()
    const holds = held.map((tensor) => {
      if (tensor === null || tensor === undefined) return null
      const parameter = tensor.slot?.currentValue
      const { memory, writes } = tensor
      if (parameter !== undefined) return { tensor: null, parameter, memory, writes }
      if (!inputs.includes(tensor) && !outputs.includes(tensor)) {
        tensor.owner?.remove(tensor)
        owned.add(tensor)
      } else tensor.hold()
      return { tensor, parameter: null, memory, writes }
    })
    const slots = outputs.map((output) => {
      if (output.dtype !== 'f32' && output.dtype !== 'f64') return null
      const slot = new Slot(this, output)
      output.slot = slot
      this.marked.push(output)
      return slot
    })
    this.steps.push({ name, inputs: inputs.map((input) => input?.slot ?? null), outputs: slots, holds, owned, backward })
  }

  /** Runs `action` in the backward, between the steps recorded after and before this call. */
  mark(action: () => void): void {
    this.steps.push({ name: 'mark', inputs: [], outputs: [], holds: [], owned: new Lifetime(), backward: action })
  }

  /** Runs `action` when the tape ends, also where a step failed: to give back what a mark had taken. */
  whenEnded(action: () => void): void {
    this.endings.push(action)
  }

  /** Asks for the gradient of a tensor: an input of the step, or a result in the middle of it. Read it with `gradient` after the backward. */
  watch(tensor: Tensor): Tensor {
    if (tensor.dtype !== 'f32' && tensor.dtype !== 'f64') refuse('watch', 'tensor', 'dtype f32 or f64', tensor.dtype)
    if (tensor.slot === null) {
      tensor.slot = new Slot(this, tensor)
      this.marked.push(tensor)
    }
    this.check(tensor, tensor.slot)
    tensor.slot.isKept = true
    return tensor
  }

  /** The gradient of a watched tensor after the backward, as a tensor of the innermost scope; null when none reached it. */
  gradient(tensor: Tensor): Tensor | null {
    if (tensor.slot === null || !tensor.slot.isKept)
      refuse('gradient', 'tensor', 'a watched tensor', `${describeShape(tensor)} that is not watched`)
    const { gradient } = tensor.slot
    return gradient === null ? null : viewOf(gradient, gradient.shape, gradient.strides, 0)
  }

  /**
   * Runs the recorded steps in reverse. Gradients of parameters are added to what their parameters hold. The tape is consumed: what the steps
   * held is freed as they run.
   */
  backward(loss: Tensor): void
  backward(seeds: readonly BackwardSeed[]): void
  backward(from: Tensor | readonly BackwardSeed[]): void {
    if (this.isConsumed)
      refuse('backward', 'tape', 'a tape that has not run backward', 'one that has: gradients of gradients are not recorded')
    scope(() => {
      const seeds = isSeeds(from) ? from : [{ output: from, gradient: oneOf(from) }]
      for (const { output, gradient } of seeds) this.checkSeed(output, gradient)
      this.isConsumed = true
      const outer = active
      active = null
      try {
        BackwardStep.seed(seeds)
        for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) BackwardStep.run(step)
      } finally {
        active = outer
      }
    })
  }

  private checkSeed(output: Tensor, gradient: Tensor): void {
    if (output.slot === null)
      refuse('backward', 'output', 'a tensor that depends on a parameter', `${describeShape(output)}, which does not`)
    this.check(output, output.slot)
    if (describeShape(output) !== describeShape(gradient))
      refuse('backward', 'gradient', `${describeShape(output)} as the output`, describeShape(gradient))
  }

  /** Frees what was not consumed, and unmarks the tensors that took part. */
  end(): void {
    this.isConsumed = true
    for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) BackwardStep.free(step)
    for (const tensor of this.marked) {
      const gradient = tensor.slot?.gradient
      if (gradient !== undefined && gradient !== null) gradient.dispose()
      tensor.slot = null
    }
    this.marked.length = 0
    for (let action = this.endings.pop(); action !== undefined; action = this.endings.pop()) action()
  }

  /** Makes this the tape that records while `body` runs. */
  run<T>(body: () => T): T {
    const outer = active
    active = this
    try {
      return body()
    } finally {
      active = outer
    }
  }
}

function isSeeds(from: Tensor | readonly BackwardSeed[]): from is readonly BackwardSeed[] {
  return Array.isArray(from)
}

function oneOf(loss: Tensor): Tensor {
  if (loss.elements !== 1) refuse('backward', 'loss', 'one element, or a gradient beside it', describeShape(loss))
  return fromArray(loss.dtype, loss.shape, [1])
}

/**
 * Records `body` on a new tape, in a scope of its own. Call `tape.backward(loss)` inside. When it ends, the tape and all it held is gone.
 */
export function record<T>(body: (tape: Tape) => T): T {
  if (active !== null) refuse('record', 'body', 'one tape at a time', 'a tape inside another')
  const tape = new Tape()
  try {
    return scope(() => tape.run(() => body(tape)))
  } finally {
    tape.end()
  }
}

/** Runs `body` without recording. */
export function noGrad<T>(body: () => T): T {
  const outer = active
  active = null
  try {
    return body()
  } finally {
    active = outer
  }
}

/** The same elements, through which no gradient flows: a view. */
export function detach(tensor: Tensor): Tensor {
  return viewOf(tensor, tensor.shape, tensor.strides, 0)
}
