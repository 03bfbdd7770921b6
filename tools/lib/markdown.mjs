// @ts-check
/** What the checks need to know of a Markdown file: headings, links, code blocks. */

/**
 * @typedef {object} Document
 * @property {{ text: string, slug: string, line: number }[]} headings `slug` is the anchor that GitHub gives
 * @property {{ target: string, line: number }[]} links of text, images and definitions, outside of code
 * @property {{ info: string, code: string, line: number, isClosed: boolean }[]} blocks fenced code; `line` is that of the opening fence
 */

/** @param {string} text @returns {Document} */
export function readMarkdown(text) {
  /** @type {Document} */
  const document = { headings: [], links: [], blocks: [] }
  /** @type {Map<string, number>} */
  const slugs = new Map()
  /** @type {{ fence: string, indent: number, lines: string[], info: string, line: number } | undefined} */
  let block
  const close = (/** @type {boolean} */ isClosed) => {
    if (block !== undefined) document.blocks.push({ info: block.info, code: block.lines.join('\n'), line: block.line, isClosed })
    block = undefined
  }
  for (const [index, content] of text.split('\n').entries()) {
    const line = index + 1
    const fence = /^( *)(`{3,}|~{3,})\s*([^`]*)$/.exec(content)
    if (block !== undefined) {
      const isEnd = fence !== null && fence[3] === '' && fence[2]?.startsWith(block.fence)
      if (isEnd) close(true)
      else block.lines.push(content.slice(Math.min(block.indent, content.length - content.trimStart().length)))
      continue
    }
    if (fence !== null) {
      block = { fence: fence[2] ?? '', indent: fence[1]?.length ?? 0, lines: [], info: fence[3]?.trim() ?? '', line }
      continue
    }
    const heading = /^#{1,6} +(.*?) *#*$/.exec(content)?.[1]
    if (heading !== undefined) {
      const slug = heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replace(/ /g, '-')
      const seen = slugs.get(slug) ?? 0
      slugs.set(slug, seen + 1)
      document.headings.push({ text: heading, slug: seen === 0 ? slug : `${slug}-${seen}`, line })
    }
    const prose = content.replace(/(`+)(?:(?!\1).)*\1/g, '')
    for (const [, target = ''] of prose.matchAll(/\]\(\s*<?([^)\s>]+)/g)) document.links.push({ target, line })
    const definition = /^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)/.exec(prose)?.[1]
    if (definition !== undefined) document.links.push({ target: definition, line })
  }
  close(false)
  return document
}
