/** A normalised configuration, or the sentence why the file cannot be one. */
export type ConfigParse<T> = { readonly config: T } | { readonly fault: string }
