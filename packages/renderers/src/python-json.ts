/**
 * JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it, which is what templates print: a space after commas and colons, characters
 * beyond ASCII kept. (JavaScript has one kind of number, so a 1.0 of a file is written as 1.)
 */
export function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined)
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}: ${pythonJson(item)}`).join(', ')}}`
  }
  return JSON.stringify(value) ?? 'null'
}
