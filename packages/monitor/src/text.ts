/** A whole number for a person. */
export function round(value: number): string {
  return String(Math.round(value))
}

/** `1:02:03`, `2:03`. */
export function duration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds))
  const two = (value: number) => String(value).padStart(2, '0')
  const hours = Math.floor(total / 3600)
  const minutes = Math.floor(total / 60) % 60
  return hours > 0 ? `${hours}:${two(minutes)}:${two(total % 60)}` : `${minutes}:${two(total % 60)}`
}

const bars = '▁▂▃▄▅▆▇█'

/**
 * The course of `values` in at most `width` characters, each the mean of its share of them, from the lowest to the highest. Values that are not
 * finite are left out.
 */
export function sparkline(values: readonly number[], width: number): string {
  const finite = values.filter(Number.isFinite)
  const cells = Math.max(0, Math.min(Math.floor(width), finite.length))
  const means = Array.from({ length: cells }, (_, cell) => {
    const share = finite.slice(Math.floor((cell * finite.length) / cells), Math.floor(((cell + 1) * finite.length) / cells))
    return share.reduce((sum, value) => sum + value / share.length, 0)
  })
  const low = Math.min(...means)
  const range = Math.max(...means) - low
  return means.map((value) => bars[range > 0 ? Math.round(((value - low) / range) * (bars.length - 1)) : 0]).join('')
}

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
const widthOf = (character: string): number => (wide.test(character) ? 2 : /\p{Mark}/u.test(character) ? 0 : 1)

/** Cells of a terminal that `text` takes. */
export function cells(text: string): number {
  let sum = 0
  for (const character of text) sum += widthOf(character)
  return sum
}

/** `text` as one line of at most `columns` cells of a terminal: control characters become spaces, what does not fit is cut off with `…`. */
export function fitLine(text: string, columns: number): string {
  const line = text.replace(/\p{Control}+/gu, ' ')
  if (cells(line) <= columns) return line
  let kept = ''
  let used = 0
  for (const character of line) {
    used += widthOf(character)
    if (used > columns - 1) break
    kept += character
  }
  return `${kept}…`
}
