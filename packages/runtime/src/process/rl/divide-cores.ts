/** Variable of the environment that sets the threads of a process' pool. */
export const threadsVariable = 'TRILITHON_THREADS'

/**
 * Threads for each engine and for the trainer, from the cores of this machine. Trainer and engines compute at the same time where batches overlap, and the orchestrator
 * and the environments take a share that is small beside them. On two cores, a thread for each was as fast as two for each (`README.md`, measured figures).
 */
export function divideCores(cores: number, engines: number): { readonly inference: number; readonly trainer: number } {
  if (engines === 0) return { inference: 0, trainer: Math.max(1, cores) }
  const half = Math.max(1, Math.floor(cores / 2))
  return { inference: Math.max(1, Math.floor(half / engines)), trainer: Math.max(1, cores - half) }
}
