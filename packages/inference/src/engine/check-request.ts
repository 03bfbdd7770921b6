import { TrilithonError } from '@trilithon/core'
import type { EngineInfo, EngineRequest } from './engine.ts'

/** Throws `REQUEST_INVALID` for what the engine cannot serve. */
export function checkRequest(
  { promptIds, sampling, imported, logprobs, promptLogprobs, routedExpertsFrom }: EngineRequest,
  info: EngineInfo,
): void {
  const { vocabSize, maxModelLen } = info
  if (promptIds.length === 0) refuse('promptIds', 'a prompt of at least one token', 'an empty one')
  if (promptIds.length >= maxModelLen)
    refuse('promptIds', `a prompt of at most ${maxModelLen - 1} tokens, so that one can follow`, `${promptIds.length} tokens`)
  for (let index = 0; index < promptIds.length; index++)
    if ((promptIds[index] as number) >= vocabSize)
      refuse(`promptIds[${index}]`, `a token from 0 to ${vocabSize - 1}`, String(promptIds[index]))
  const { temperature, topK, topP, minP, seed, maxTokens, minTokens, stopIds } = sampling
  const isCount = (value: number, least: number) => Number.isSafeInteger(value) && value >= least
  if (temperature !== 0 && !(temperature >= 1e-6 && temperature <= 1e6))
    refuse('sampling.temperature', '0, or a number from 1e-6 to 1e6', String(temperature))
  if (!isCount(topK, 0) || topK > 0x7fffffff) refuse('sampling.topK', 'a whole number from 0', String(topK))
  if (!(topP > 0 && topP <= 1)) refuse('sampling.topP', 'a number above 0 and up to 1', String(topP))
  if (!(minP >= 0 && minP <= 1)) refuse('sampling.minP', 'a number from 0 to 1', String(minP))
  if (BigInt.asIntN(64, seed) !== seed) refuse('sampling.seed', 'a whole number of 64 bits', String(seed))
  if (!isCount(maxTokens, 1)) refuse('sampling.maxTokens', 'a whole number above 0', String(maxTokens))
  if (!isCount(minTokens, 0) || minTokens > maxTokens)
    refuse('sampling.minTokens', `a whole number from 0 to ${maxTokens}`, String(minTokens))
  for (const id of stopIds)
    if (!isCount(id, 0) || id >= vocabSize) refuse('sampling.stopIds', `tokens from 0 to ${vocabSize - 1}`, String(id))
  if (minTokens > 0 && new Set([...stopIds, ...info.endIds]).size >= vocabSize)
    refuse('sampling.stopIds', 'at least one token that does not end the answer', 'all of them')
  for (const [name, value] of Object.entries({ logprobs, promptLogprobs, routedExpertsFrom }))
    if (value !== null && !isCount(value, 0)) refuse(name, 'a whole number from 0, or null', String(value))
  const first = imported?.firstToken ?? null
  if (first !== null && (!isCount(first.id, 0) || first.id >= vocabSize))
    refuse('imported.firstToken.id', `a token from 0 to ${vocabSize - 1}`, String(first.id))
}

function refuse(field: string, expected: string, given: string): never {
  throw new TrilithonError('REQUEST_INVALID', `${field}: expected ${expected}; given ${given}`, {
    path: field,
    hint: 'Correct this field of the request.',
  })
}
