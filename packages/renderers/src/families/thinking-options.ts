/** Keys on thinking of the table `renderer`; undefined and null leave the default of the template. */
export interface ThinkingOptions {
  readonly enable_thinking?: boolean | null | undefined
  readonly clear_thinking?: boolean | undefined
  readonly preserve_all_thinking?: boolean | undefined
  readonly preserve_thinking_between_tool_calls?: boolean | undefined
}
