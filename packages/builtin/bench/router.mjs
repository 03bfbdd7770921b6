// @ts-check
/**
 * Cost of one routing decision of the built-in router over 64 workers, with 4096 live leases and the default bound on sessions; beside it the
 * limit: reading the view once. Build first; then `node bench/router.mjs`.
 */
import { silentLogger } from '@trilithon/core'
import { stickyRouter } from '../dist/index.js'
import { compare, report } from './measure.mjs'

const calls = 20_000
const workers = Array.from({ length: 64 }, (_, index) => ({
  id: `http://engine-${index}:8000#0`,
  url: `http://engine-${index}:8000`,
  role: /** @type {const} */ ('both'),
  state: /** @type {const} */ ('ready'),
  policyVersion: 3,
  reportedRequests: index % 7,
  capabilities: new Set(['routed_experts']),
}))
const fleet = { workers: () => workers, nowMs: () => 0 }
const run = { roles: [], workingDirectory: '/', numericsProfile: 'fp32', resolved: {} }
const router = await stickyRouter.create({
  config: { 'orchestrator.router': undefined },
  run,
  needs: {},
  log: silentLogger,
  signal: new AbortController().signal,
})

/** @param {string} sessionId */
function route(sessionId) {
  const request = {
    sessionId,
    promptTokens: 1000,
    salt: 'v3',
    needs: ['routed_experts'],
    minPolicyVersion: 2,
    exclude: [],
    leaseMs: 600_000,
  }
  const answer = router.route(request, fleet)
  if (answer instanceof Promise || answer.status !== 'leased') throw new Error('not leased')
  return answer.lease
}

for (let lease = 0; lease < 4096; lease++) route(`held ${lease}`)

// As many sessions as the router remembers, so that each new one replaces an old one.
for (let session = 0; session < 100_000; session++) route(`old ${session}`).end({ ok: true })

let next = 0
const newSessions = {
  calls,
  run() {
    for (let call = 0; call < calls; call++) route(`new ${next++}`).end({ ok: true })
  },
}
const nextTurns = {
  calls,
  run() {
    for (let call = 0; call < calls; call++) route(`known ${call % 4096}`).end({ ok: true })
  },
}
let seen = 0
const reading = {
  calls,
  run() {
    for (let call = 0; call < calls; call++)
      for (const worker of fleet.workers()) if (worker.state === 'ready' && worker.policyVersion >= 2) seen += worker.reportedRequests
  },
}

const microseconds = (/** @type {number} */ ns) => `${(ns / 1000).toFixed(2)} us`
for (const [name, subject] of Object.entries({ 'new session': newSessions, 'next turn': nextTurns })) {
  const { subjectNs, limitNs, ratio, interval } = await compare(subject, reading)
  report(
    `${name}, 64 workers: ${microseconds(subjectNs)} for route and end; reading the view ${microseconds(limitNs)}; ratio ${ratio.toFixed(1)} (95 %: ${interval.map((each) => each?.toFixed(1)).join(' to ')})`,
  )
}
if (seen < 0) throw new Error('the reading was optimised away')
await router.dispose()
