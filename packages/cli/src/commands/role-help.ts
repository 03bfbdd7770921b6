import { findRoot, type RootName } from '@trilithon/runtime'

/** The help of a role: how keys become flags, and the keys at the top with their meaning. */
export function roleHelp(root: RootName): string {
  const { summary, mounts } = findRoot(root)
  const lines = [
    `Usage: trilithon ${root} @ file.toml [@ more.toml] [--table.key value] [options]`,
    '',
    summary,
    '',
    'Files compose from left to right, flags come on top. Every key of the configuration is a flag:',
    '  --max-steps 5            a key (kebab or snake case)',
    '  --table.key value        a key of a table; --table.key @ file.toml fills a table from a file',
    '  --list a b c             a list, or as JSON: --list \'["a", "b"]\'',
    '  --flag, --no-flag        true and false; --no-table switches an optional table off',
    '',
    'Options:',
    '  --dry-run                compose and check, write the resolved configuration of each role, start nothing',
    '  --json                   machine-readable report on standard output',
    '  --verbose                show stacks and causes of errors',
    '  -h, --help               this text',
    '',
    'Keys:',
  ]
  for (const { root: part, at } of mounts) {
    if (at.length > 0) {
      lines.push(`  ${`--${at.join('.')}.…`.padEnd(27)} see \`trilithon ${part.name} --help\``)
      continue
    }
    for (const [key, schema] of Object.entries(part.schema.shape)) {
      const meaning = describe(schema)
      lines.push(`  ${`--${key.replaceAll('_', '-')}`.padEnd(27)} ${meaning}`)
    }
    for (const slot of part.slots ?? [])
      if (!(slot.at in part.schema.shape)) lines.push(`  ${`--${slot.at.replaceAll('_', '-')}.type`.padEnd(27)} ${slot.description}`)
  }
  lines.push('', `All keys with types and defaults: trilithon schema ${root}`)
  return `${lines.join('\n')}\n`
}

function describe(schema: { readonly description?: string | undefined }): string {
  return schema.description ?? ''
}
