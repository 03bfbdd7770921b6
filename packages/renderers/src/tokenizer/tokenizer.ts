/** Text to token ids and back. Ids are those of `tokenizer.json`; nothing is added to a text (no bos, no eos) and nothing cut off. */
export interface Tokenizer {
  /** Highest id plus one; a model's embedding has at least as many rows. */
  readonly vocabularySize: number
  readonly bosId: number | undefined
  readonly eosId: number | undefined
  readonly padId: number | undefined
  /** Ids that end a sampled turn: the eos token, and those that `generation_config.json` or `config.json` names. */
  readonly stopIds: readonly number[]
  /** Added tokens by their text, special or not; a text that contains one is split there. */
  readonly addedTokens: ReadonlyMap<string, number>
  /** What templates see as `bos_token`, `eos_token`, …. */
  readonly specialTokens: Readonly<Record<string, string>>
  /** Chat template of the folder, and the file that it stands in. */
  readonly chatTemplate: { readonly text: string; readonly file: string } | undefined
  /** Throws `TEXT_NOT_ENCODABLE` where the vocabulary lacks a character and has no token for unknown ones. */
  encode(text: string): number[]
  /** Special tokens are kept unless asked otherwise: what is cut by length is cut by ids, never by text. */
  decode(ids: ArrayLike<number>, options?: { readonly skipSpecialTokens?: boolean }): string
  /** Id of a token by its exact text, an added one or one of the vocabulary. */
  findId(token: string): number | undefined
}
