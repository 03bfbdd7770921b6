import { TrilithonError } from '@trilithon/core'

/** What the answer to a request that is refused says. The shape is vLLM's, the text ours. */
export interface FailureBody {
  readonly error: { readonly message: string; readonly type: string; readonly param: string | null; readonly code: number }
}

const types: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  404: 'NotFoundError',
  408: 'RequestTimeoutError',
  409: 'ConflictError',
  413: 'RequestTooLargeError',
  415: 'UnsupportedMediaTypeError',
  431: 'HeadersTooLargeError',
  503: 'ServiceUnavailableError',
}

/** A request that is refused, with the HTTP status of its answer. `param` is the field that is wrong, as a path in the body. */
export class HttpFailure extends Error {
  readonly status: number
  readonly param: string | null

  constructor(status: number, message: string, param: string | null = null) {
    super(message)
    this.name = 'HttpFailure'
    this.status = status
    this.param = param
  }

  static body(status: number, message: string, param: string | null = null): FailureBody {
    return { error: { message, type: types[status] ?? 'InternalServerError', param, code: status } }
  }

  toBody(): FailureBody {
    return HttpFailure.body(this.status, this.message, this.param)
  }
}

/** Statuses of coded errors that a client can do something about; all others are 500. */
const statuses: Readonly<Record<string, number>> = {
  REQUEST_INVALID: 400,
  TEXT_NOT_ENCODABLE: 400,
  MESSAGES_INVALID: 400,
  WEIGHTS_INVALID: 400,
  CHECKPOINT_INVALID: 400,
  MODEL_CONFIG_INVALID: 400,
  MODEL_NOT_FOUND: 400,
  WEIGHTS_NOT_PREPARED: 409,
}

/** Any error as the answer to a request. A coded one is told with its code, so that a client can tell the causes apart. */
export function failureOf(error: unknown): HttpFailure {
  if (error instanceof HttpFailure) return error
  if (TrilithonError.is(error)) {
    const text = error.code === 'REQUEST_INVALID' ? error.message : `${error.code}: ${error.message}`
    const hint = error.hint === undefined ? '' : ` ${error.hint}`
    return new HttpFailure(statuses[error.code] ?? 500, `${text}${hint}`, error.path ?? null)
  }
  const { statusCode, message } = error as { readonly statusCode?: unknown; readonly message?: unknown }
  // What fastify itself refuses carries its status: a body that is no JSON, or too large.
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) return new HttpFailure(statusCode, String(message))
  return new HttpFailure(500, 'the server failed; its log says why')
}
