/** Where a run is shown: `process.stdout`, or a test. */
export interface ViewOutput {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}
