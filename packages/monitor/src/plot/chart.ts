import type { Point } from './read-metrics.ts'
import { roundScale, type Scale, stepScale } from './scale.ts'

export interface Series {
  readonly name: string
  readonly points: readonly Point[]
  /** `faint`: a thin pale line that belongs to the next series and is not named; `marks`: circles. One with an empty name is not in the legend. */
  readonly style: 'line' | 'faint' | 'marks'
  /** Number of the colour, from 0. */
  readonly color: number
}

export interface Panel {
  readonly title: string
  readonly series: readonly Series[]
  /** Values that the axis shows whatever the data are. */
  readonly includes?: readonly number[]
  /** Takes a whole row. */
  readonly isWide?: boolean
}

export interface ChartOptions {
  readonly title: string
  readonly subtitle?: string
  readonly xTitle: string
  readonly panels: readonly Panel[]
}

const width = 860
const margin = 20
const gap = 28
const height = { wide: 240, narrow: 180 }
/** Around the area of a panel's curves. */
const inner = { left: 46, right: 8, top: 30, bottom: 34 }

interface Theme {
  readonly back: string
  readonly text: string
  readonly soft: string
  readonly grid: string
  readonly axis: string
  /** Told apart by people who do not see red and green as well. */
  readonly curves: readonly string[]
}
const light: Theme = {
  ...{ back: '#ffffff', text: '#1f2328', soft: '#59636e', grid: '#d9dee3', axis: '#8c959f' },
  curves: ['#0969da', '#bc4c00', '#1a7f37', '#8250df', '#9a6700', '#57606a'],
}
const dark: Theme = {
  ...{ back: '#0d1117', text: '#e6edf3', soft: '#9198a1', grid: '#2b323a', axis: '#6e7681' },
  curves: ['#58a6ff', '#ff9b4f', '#4fc66a', '#bc8cff', '#e0b341', '#9198a1'],
}
const colors = light.curves.length

/** No variables of CSS: not all that draws SVG knows them. */
function rulesOf({ back, text: ink, soft, grid, axis, curves }: Theme): string {
  const tones = curves.map((color, index) => `.s${index}{stroke:${color}}.f${index}{fill:${color}}`)
  return `.back{fill:${back}}.text{fill:${ink}}.soft{fill:${soft}}.grid{stroke:${grid}}.axis{stroke:${axis}}${tones.join('')}`
}
const shapes = `.line{stroke-width:1.8}.faint{stroke-width:1;opacity:.35}
text{font-family:system-ui,-apple-system,'Segoe UI','Noto Sans','DejaVu Sans',sans-serif;font-size:12px}.title{font-size:17px;font-weight:600}.panel{font-size:13px;font-weight:600}`
const style = `${rulesOf(light)}\n@media (prefers-color-scheme:dark){${rulesOf(dark)}}\n${shapes}`

/** Panels of curves over a common axis as one SVG, with no script and no outside font; readable on a light and on a dark background. */
export function chart({ title, subtitle = '', xTitle, panels }: ChartOptions): string {
  const xs = panels.flatMap(({ series }) => series.flatMap(({ points }) => points.map(([x]) => x)))
  const parts: string[] = []
  let y = margin + (subtitle === '' ? 34 : 54)
  let column = 0
  const half = (width - 2 * margin - gap) / 2
  panels.forEach((panel, index) => {
    const isAlone = column === 0 && (index === panels.length - 1 || panels[index + 1]?.isWide === true)
    const isWide = panel.isWide === true || isAlone
    const place = {
      x: margin + column * (half + gap),
      y,
      width: isWide ? width - 2 * margin : half,
      height: panel.isWide === true ? height.wide : height.narrow,
    }
    parts.push(drawPanel(panel, place, stepScale(xs, isWide ? 10 : 5), xTitle))
    if (isWide || column === 1) {
      y += place.height + gap / 2
      column = 0
    } else column = 1
  })
  const total = Math.round(y + margin / 2)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${total}" width="${width}" height="${total}" role="img" aria-label="${escaped(title)}">`,
    `<style>${style}</style>`,
    `<rect class="back" width="${width}" height="${total}" rx="6"/>`,
    text(margin, margin + 12, title, 'text title'),
    ...(subtitle === '' ? [] : [text(margin, margin + 34, subtitle, 'soft')]),
    ...parts,
    '</svg>\n',
  ].join('\n')
}

function drawPanel(panel: Panel, place: { x: number; y: number; width: number; height: number }, xScale: Scale, xTitle: string): string {
  const left = place.x + inner.left
  const right = place.x + place.width - inner.right
  const top = place.y + inner.top
  const bottom = place.y + place.height - inner.bottom
  const values = panel.series.flatMap(({ points }) => points.map(([, value]) => value))
  const yScale = roundScale(values, place.height > 200 ? 5 : 4, panel.includes)
  const atX = (value: number) => short(left + xScale.at(value) * (right - left))
  const atY = (value: number) => short(bottom - yScale.at(value) * (bottom - top))
  const grid = yScale.ticks.flatMap((tick) => [
    `<line class="grid" x1="${left}" x2="${right}" y1="${atY(tick)}" y2="${atY(tick)}"/>`,
    text(left - 6, atY(tick) + 4, yScale.label(tick), 'soft', 'end'),
  ])
  const axis = [
    `<line class="axis" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`,
    ...xScale.ticks.map((tick) => text(atX(tick), bottom + 16, xScale.label(tick), 'soft', 'middle')),
    text(right, bottom + 31, xTitle, 'soft', 'end'),
  ]
  const curves = panel.series.map(({ points, style: kind, color }) => {
    if (kind === 'marks')
      return points.map(([x, value]) => `<circle class="f${color % colors}" cx="${atX(x)}" cy="${atY(value)}" r="3.6"/>`).join('')
    if (points.length === 1)
      return points.map(([x, value]) => `<circle class="f${color % colors}" cx="${atX(x)}" cy="${atY(value)}" r="2"/>`).join('')
    const way = points.map(([x, value]) => `${atX(x)},${atY(value)}`).join(' ')
    return `<polyline class="${kind} s${color % colors}" fill="none" stroke-linejoin="round" points="${way}"/>`
  })
  return [text(place.x, place.y + 16, panel.title, 'text panel'), ...legend(panel, right, place.y + 16), ...grid, ...axis, ...curves].join(
    '\n',
  )
}

/** Names of the series at the right end of the title's line, first to last. */
function legend({ series, title }: Panel, right: number, y: number): string[] {
  const named = series.filter(({ name, style: kind }) => kind !== 'faint' && name !== '')
  if (named.length === 1 && named[0]?.name === title) return []
  let x = right
  return named.toReversed().flatMap(({ name, style: kind, color }) => {
    // About the width of a letter of this size; a name begins beside its colour, whatever the font.
    const key = short(x - 6.7 * name.length - 8)
    const shape =
      kind === 'marks'
        ? `<circle class="f${color % colors}" cx="${key}" cy="${y - 4}" r="3.6"/>`
        : `<rect class="f${color % colors}" x="${short(key - 12)}" y="${y - 5.5}" width="14" height="3"/>`
    const parts = [shape, text(key + 8, y, name, 'soft')]
    x = key - 26
    return parts
  })
}

function text(x: number, y: number, value: string, classes: string, anchor = 'start'): string {
  return `<text class="${classes}" x="${short(x)}" y="${short(y)}"${anchor === 'start' ? '' : ` text-anchor="${anchor}"`}>${escaped(value)}</text>`
}

function short(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(value: string): string {
  return value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
