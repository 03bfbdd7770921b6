/** One text to train on, as tokens: mask 1 where a token is trained, which the first never is. `where` names it: `train.jsonl:12`. */
export interface Document {
  readonly ids: Uint32Array
  readonly mask: Uint8Array
  readonly where: string
  /** Tokens that the sequence length cut off. */
  readonly cut: number
}
