/** Requests with everything at its plain value, and what an engine answers to them. */
import type { OpaquePayload } from '@trilithon/core'
import type { Engine, EngineEnd, EngineEvent, EnginePrompt, EngineRequest, SamplingOptions, TokenCandidate } from '../src/engine/engine.ts'

let requests = 0

export interface RequestChanges extends Partial<Omit<EngineRequest, 'sampling' | 'promptIds'>> {
  readonly sampling?: Partial<SamplingOptions>
}

export function requestOf(promptIds: ArrayLike<number>, changes: RequestChanges = {}): EngineRequest {
  const { sampling = {}, ...rest } = changes
  return {
    id: `request-${requests++}`,
    promptIds: Uint32Array.from(Array.from(promptIds)),
    salt: '',
    tenant: '',
    priority: 0,
    logprobs: 0,
    promptLogprobs: null,
    routedExpertsFrom: null,
    reportsIndexChoices: false,
    imported: null,
    ...rest,
    sampling: {
      temperature: 1,
      topK: 0,
      topP: 1,
      minP: 0,
      seed: 7n,
      maxTokens: 8,
      minTokens: 0,
      stopIds: [],
      stopsAtEnd: false,
      ...sampling,
    },
  }
}

export interface Answer {
  readonly tokens: number[]
  readonly logprobs: number[]
  readonly versions: number[]
  readonly contextVersionsMin: number[]
  readonly candidates: (readonly TokenCandidate[])[]
  readonly kinds: EngineEvent['kind'][]
  prompt: EnginePrompt | null
  end: EngineEnd | null
}

/** Runs a request to its end. */
export function generate(engine: Engine, request: EngineRequest, onToken: (answer: Answer) => void = () => undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const answer: Answer = {
      tokens: [],
      logprobs: [],
      versions: [],
      contextVersionsMin: [],
      candidates: [],
      kinds: [],
      prompt: null,
      end: null,
    }
    try {
      engine.submit(request, (event) => {
        answer.kinds.push(event.kind)
        if (event.kind === 'prompt') answer.prompt = event
        else if (event.kind === 'tokens') {
          answer.tokens.push(...event.tokenIds)
          answer.logprobs.push(...event.logprobs)
          answer.versions.push(...event.versions)
          answer.contextVersionsMin.push(...event.contextVersionsMin)
          answer.candidates.push(...event.candidates)
          onToken(answer)
        } else {
          answer.end = event
          resolve(answer)
        }
      })
    } catch (error) {
      reject(error)
    }
  })
}

export const bitsOf = (values: ArrayLike<number>): number[] => [...new Uint32Array(Float32Array.from(Array.from(values)).buffer)]
export const rowsOf = (payload: OpaquePayload | null): number[] | null => (payload === null ? null : [...payload.data])
