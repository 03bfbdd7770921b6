/**
 * Keys that the code of a role reads, by root; a variant of a union is in brackets, `*` an item of a list. A test of the runtime finds for every
 * key of a role that can be started an entry here, or metadata that refuses or reports it. Who writes the code that reads a key adds the key.
 */
export const inferenceReadKeys: Readonly<Record<'inference', readonly string[]>> = { inference: [] }
