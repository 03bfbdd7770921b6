/** Ends this process at once when the channel between it and its parent closes. Where a busy loop keeps it from hearing of it, the watch thread does. */
export function endWithParent(onEnd: () => void): void {
  process.once('disconnect', () => {
    onEnd()
    process.exit(0)
  })
}
