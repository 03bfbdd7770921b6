// @ts-check
import { expect, test } from 'vitest'
import { checkDocs, rules } from '../check-docs.mjs'
import { readMarkdown } from '../lib/markdown.mjs'
import { formatProblem } from '../lib/problems.mjs'
import { manifest, withTree } from './mini-tree.mjs'

const compilerOptions = {
  module: 'nodenext',
  strict: true,
  types: [],
  customConditions: ['trilithon-src'],
  allowImportingTsExtensions: true,
}
const fence = '```'

/** @type {Readonly<Record<string, string>>} */
const cleanDocs = {
  'package.json': '{ "type": "module" }',
  'tsconfig.base.json': JSON.stringify({ compilerOptions }),
  'packages/core/package.json': manifest('@trilithon/core', {
    type: 'module',
    exports: { '.': { 'trilithon-src': './src/index.ts', default: './dist/index.js' } },
  }),
  'packages/core/src/index.ts': 'export const answer: number = 42\n',
  'packages/core/README.md': `# Core\n\n${fence}ts\nimport { answer } from '@trilithon/core'\nawait Promise.resolve(answer)\n${fence}\n`,
  'docs/guide.md': `# A guide\n\n- step:\n  ${fence}ts ignore\n  nonsense(((\n  ${fence}\n\nSee [core](../packages/core/README.md#core), [below](#two-words), [docs](.) and [the web](https://example.org).\n\n## Two \`words\`\n\n\`[no](link.md)\`\n`,
  '.changeset/first.md': '---\n"@trilithon/core": minor\n---\n\nFirst release.\n',
}

/** @type {{ rule: keyof typeof rules, title: string, files: Record<string, string>, says: string }[]} */
const planted = [
  {
    rule: 'typescript',
    title: 'a block that does not compile',
    files: { 'README.md': `Text\n\n${fence}ts\nimport { answer } from '@trilithon/core'\nconst text: string = answer\n${fence}\n` },
    says: "README.md:5 [typescript] It does not compile: TS2322: Type 'number' is not assignable to type 'string'. Mend it, or mark",
  },
  {
    rule: 'typescript',
    title: 'a block that enters a package by a side door',
    files: { 'README.md': `${fence}typescript\nimport '@trilithon/core/src/index.ts'\n${fence}\n` },
    says: 'README.md:2 [typescript] It does not compile: TS2882',
  },
  {
    rule: 'block',
    title: 'a mark that means nothing',
    files: { 'README.md': `${fence}ts skip\n${fence}\n` },
    says: 'README.md:1 [block] A block is marked "ts skip". Write ts',
  },
  {
    rule: 'block',
    title: 'a block without an end',
    files: { 'README.md': `# Title\n\n${fence}sh\nls\n` },
    says: 'README.md:3 [block] A code block is not closed. End it',
  },
  {
    rule: 'link',
    title: 'a link to no file',
    files: { 'docs/more.md': 'See\n[guide](guides.md).\n' },
    says: 'docs/more.md:2 [link] The link guides.md leads to no file. Mend the path.',
  },
  {
    rule: 'link',
    title: 'a definition that leads out of the project',
    files: { 'README.md': '[it]: ../elsewhere.md\n' },
    says: 'README.md:1 [link] The link ../elsewhere.md leads to no file.',
  },
  {
    rule: 'link',
    title: 'an anchor without a heading',
    files: { 'README.md': '![it](docs/guide.md#three-words)\n' },
    says: 'README.md:1 [link] The link docs/guide.md#three-words names no heading of docs/guide.md.',
  },
  {
    rule: 'link',
    title: 'a link from the root of a machine',
    files: { 'README.md': '[it](/docs/guide.md)\n' },
    says: 'README.md:1 [link] The link /docs/guide.md starts with a slash. Write it relative',
  },
  {
    rule: 'changeset',
    title: 'a package that nobody announces',
    files: { 'plugins/fsdp/package.json': manifest('@trilithon/fsdp') },
    says: 'plugins/fsdp/package.json [changeset] @trilithon/fsdp was never released and no changeset names it. Add to .changeset/first.md',
  },
  {
    rule: 'changeset',
    title: 'a changeset of a package that is gone',
    files: { '.changeset/second.md': "---\n'@trilithon/gone': patch\n---\n\nText\n" },
    says: '.changeset/second.md [changeset] It names @trilithon/gone, which is not a package',
  },
]

test('true documents pass', () => {
  expect(withTree(cleanDocs, checkDocs)).toEqual({ problems: [], documents: 2, compiled: 1 })
})

test('every rule has a planted violation', () => {
  expect([...new Set(planted.map(({ rule }) => rule))].sort()).toEqual(Object.keys(rules).sort())
})

test.for(planted)('$rule: $title', ({ files, says }) => {
  const { problems } = withTree({ ...cleanDocs, ...files }, checkDocs)
  expect(problems.map(formatProblem)).toEqual([expect.stringContaining(says)])
})

test('a package that was released needs no changeset', () => {
  const { '.changeset/first.md': _, 'packages/core/package.json': unreleased = '', ...others } = cleanDocs
  const files = { ...others, 'packages/core/package.json': unreleased.replace('"0.0.0"', '"0.1.0"') }
  expect(withTree(files, checkDocs).problems).toEqual([])
})

test('Markdown: a fence inside a longer fence is text, anchors are numbered', () => {
  const text = '````md\n```ts\n[x](y)\n```\n````\n# Same\n## Same ##\n[a]( <b> ) ``[c](d) ` `` [e](f "title")\n'
  expect(readMarkdown(text)).toEqual({
    blocks: [{ info: 'md', code: '```ts\n[x](y)\n```', line: 1, isClosed: true }],
    headings: [
      { text: 'Same', slug: 'same', line: 6 },
      { text: 'Same', slug: 'same-1', line: 7 },
    ],
    links: [
      { target: 'b', line: 8 },
      { target: 'f', line: 8 },
    ],
  })
})
