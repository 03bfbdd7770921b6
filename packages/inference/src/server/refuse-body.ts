import type { FastifyRequest } from 'fastify'
import { HttpFailure } from './http-failure.ts'

/** For a route that reads no body: one that is sent would be ignored in silence. `query` are the names that the route knows. */
export function refuseBody({ body, query }: FastifyRequest, known: { readonly query?: readonly string[] } = {}): void {
  const isEmpty = body == null || (typeof body === 'object' && Object.keys(body).length === 0)
  if (!isEmpty) throw new HttpFailure(400, 'this route reads no body; what it can be told stands in the query', 'body')
  const unknown = Object.keys(query as object).find((name) => !(known.query ?? []).includes(name))
  if (unknown !== undefined) throw new HttpFailure(400, `there is no parameter ${unknown.slice(0, 100)}`, `query.${unknown.slice(0, 100)}`)
}

/** A switch in the query. */
export function queryFlag(request: FastifyRequest, name: string): boolean {
  const value = (request.query as Readonly<Record<string, unknown>>)[name]
  if (value === undefined) return false
  const text = String(value).toLowerCase()
  if (['true', '1', 'yes', 'on'].includes(text)) return true
  if (['false', '0', 'no', 'off'].includes(text)) return false
  throw new HttpFailure(400, `${name} must be true or false`, `query.${name}`)
}
