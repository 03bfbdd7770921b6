import { TrilithonError } from '@trilithon/core'
import type { Message, ToolDefinition } from '../messages.ts'
import type { Rendering } from '../renderer.ts'
import type { Tokenizer } from '../tokenizer/tokenizer.ts'

/** Collects tokens with their message. Text that is written in pieces is encoded as one, up to the next token or change of attribution. */
export class TokenWriter {
  readonly #tokenizer: Tokenizer
  readonly #ids: number[] = []
  readonly #messages: number[] = []
  readonly #sampled: number[] = []
  #text = ''
  #message = -1
  #isSampled = 0

  constructor(tokenizer: Tokenizer, begin?: Rendering) {
    this.#tokenizer = tokenizer
    if (begin === undefined) return
    for (const id of begin.ids) this.#ids.push(id)
    for (const index of begin.messageIndices) this.#messages.push(index)
    for (const flag of begin.sampled) this.#sampled.push(flag)
  }

  /** What follows belongs to this message, and is or is not what the model writes. */
  attribute(message: number, sampled = false): this {
    if (message !== this.#message || Number(sampled) !== this.#isSampled) this.#flush()
    this.#message = message
    this.#isSampled = Number(sampled)
    return this
  }

  text(text: string): this {
    this.#text += text
    return this
  }

  /** One token by id. */
  token(id: number): this {
    this.#flush()
    this.#push(id)
    return this
  }

  tokens(ids: ArrayLike<number>): this {
    this.#flush()
    for (let index = 0; index < ids.length; index++) this.#push(ids[index] ?? 0)
    return this
  }

  finish(messages: readonly Pick<Message, 'role'>[], tools: readonly ToolDefinition[]): Rendering {
    this.#flush()
    return {
      ids: Uint32Array.from(this.#ids),
      messageIndices: Int32Array.from(this.#messages),
      sampled: Uint8Array.from(this.#sampled),
      roles: messages.map(({ role }) => role),
      tools,
    }
  }

  #flush(): void {
    if (this.#text === '') return
    const ids = this.#tokenizer.encode(this.#text)
    this.#text = ''
    for (const id of ids) this.#push(id)
  }

  #push(id: number): void {
    this.#ids.push(id)
    this.#messages.push(this.#message)
    this.#sampled.push(this.#isSampled)
  }
}

/** Ids of the tokens that a renderer writes by name. Throws `TOKENIZER_INVALID` that lists those that the tokeniser lacks. */
export function requireTokens<Name extends string>(
  tokenizer: Tokenizer,
  renderer: string,
  names: readonly Name[],
): Readonly<Record<Name, number>> {
  const missing = names.filter((name) => !tokenizer.addedTokens.has(name))
  if (missing.length > 0)
    throw new TrilithonError('TOKENIZER_INVALID', `the renderer ${renderer} needs tokens that the tokeniser lacks: ${missing.join(', ')}`, {
      path: 'renderer.name',
      hint: 'Choose the renderer of this model, or "default" for its chat template.',
      details: { missing },
    })
  return Object.fromEntries(names.map((name) => [name, tokenizer.addedTokens.get(name)])) as Record<Name, number>
}
