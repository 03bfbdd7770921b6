// @ts-check
/**
 * Enforces how the house is built (`floors.mjs`): who may import whom, package entrances only, no cycles, one door to the container library,
 * erasable TypeScript, manifests that tell the truth, N-API in the binding alone.
 *
 *   node tools/check-floors.mjs
 */
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { binding, container, core, floors, license, pluginMayImport, roles, scope, testsMayImport } from './floors.mjs'
import { report } from './lib/problems.mjs'
import { parseModule, specifierOf, walk } from './lib/source.mjs'
import { filesBelow, isMain, projectRoot, readManifest, readText, workspaceMembers } from './lib/workspace.mjs'

/** @typedef {import('./lib/problems.mjs').Problem} Problem */
/** @typedef {import('./lib/workspace.mjs').Member} Member */
/** @typedef {import('./lib/workspace.mjs').Manifest} Manifest */
/** @typedef {import('./lib/source.mjs').Node} Node */

/** Every rule with the sentence that it stands for. One planted violation each is in `test/check-floors.test.mjs`. */
export const rules = {
  'floor-unknown': 'A package has a place on a floor.',
  'floor-up': 'Imports go downwards.',
  'floor-same': 'Packages of one floor do not import each other, except that tests may use testing.',
  roles: 'Roles share data types in core and talk over transports.',
  'plugin-imports': 'A plugin imports core, native and tensor; its tests also testing.',
  'plugin-imported': 'Nobody imports a plugin: configuration chooses it.',
  entrance: 'A package is entered through what its manifest exports, and its sources are not exported.',
  outside: 'Shipped code does not reach outside its package.',
  cycle: 'Files of a package do not import each other in a circle.',
  container: 'One file imports the container library.',
  'core-node': 'Core runs anywhere: no modules of Node.',
  'core-dependency': 'Core depends on zod only.',
  decorator: 'No decorators.',
  enum: 'No enums.',
  'parameter-property': 'No parameter properties.',
  syntax: 'Every source file parses.',
  undeclared: 'What is imported is declared.',
  unused: 'What is declared of ours is used.',
  name: 'The folder of a package is its name without the scope.',
  scripts: 'A package with sources is built, type-checked and tested.',
  license: `Every package is ${license}.`,
  'lock-host': 'The lock file names no registry host.',
  'native-binding': 'N-API is seen by the binding alone.',
}

/** @typedef {keyof typeof rules} Rule */

/** Not shipped: tests, what they need, and scripts that build. @param {string} path below the member's folder */
const isDevelopment = (path) => /\.test\.[cm]?[jt]s$|^(test|scripts)\/|^[^/]+\.config\.[cm]?[jt]s$/.test(path)

/** @param {string} path */
const isModule = (path) => /\.[cm]?[jt]sx?$/.test(path) && !/\.d\.[cm]?ts$/.test(path)

/** Word of the floor table that a member is found by. @param {Member} member */
const floorWord = ({ kind, folder }) => (kind === 'plugin' ? 'plugins/*' : kind === 'example' ? 'examples/*' : posix.basename(folder))

/** Index into `floors`, 0 at the top; -1 where the table does not know the member. @param {Member} member */
const floorOf = (member) => floors.findIndex((floor) => floor.includes(floorWord(member)))

/** `zod/v4` → `zod`, `@scope/name/sub` → `@scope/name`. @param {string} specifier */
const packageOf = (specifier) => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

/** @param {string} root @returns {Problem[]} */
export function checkFloors(root) {
  /** @type {Problem[]} */
  const problems = []
  /** @type {(file: string, line: number | undefined, rule: Rule, message: string, hint: string) => void} */
  const add = (file, line, rule, message, hint) => problems.push({ file, ...(line === undefined ? {} : { line }), rule, message, hint })

  const members = workspaceMembers(root)
  const byName = new Map(members.filter(({ kind }) => kind !== 'example').map((member) => [member.manifest?.name ?? '', member]))
  const rootManifest = readManifest(root, '')
  if (rootManifest.license !== license)
    add('package.json', undefined, 'license', `The license is ${rootManifest.license}.`, `Write "license": "${license}".`)

  for (const member of members) {
    checkManifest(root, member, add)
    checkSources(root, member, byName, rootManifest, add)
  }
  checkNativeLayers(root, add)
  for (const [index, line] of readText(root, 'pnpm-lock.yaml').split('\n').entries()) {
    if (/https?:|tarball:/.test(line))
      add(
        'pnpm-lock.yaml',
        index + 1,
        'lock-host',
        `The lock file names a host: ${line.trim()}`,
        'Install from the default registry without an address in the lock.',
      )
  }
  return problems
}

/** @typedef {(file: string, line: number | undefined, rule: Rule, message: string, hint: string) => void} Add */

/** @param {string} root @param {Member} member @param {Add} add */
function checkManifest(root, { kind, folder, manifest }, add) {
  if (manifest === undefined) return
  const file = `${folder}/package.json`
  if (manifest.license !== license) add(file, undefined, 'license', `The license is ${manifest.license}.`, `Write "license": "${license}".`)
  if (kind === 'example') return
  const name = `${scope}/${posix.basename(folder)}`
  if (manifest.name !== name)
    add(file, undefined, 'name', `The name is ${manifest.name}.`, `Name the package ${name}, or rename its folder.`)
  if (filesBelow(root, `${folder}/src`, isModule).length > 0) {
    for (const script of ['build', 'typecheck', 'test'])
      if (manifest.scripts?.[script] === undefined)
        add(file, undefined, 'scripts', `There is no script "${script}".`, `Add it as packages/core/package.json has it.`)
  }
  for (const entrance of Object.keys(manifest.exports ?? {}))
    if (/^\.\/(src|dist)\b/.test(entrance))
      add(file, undefined, 'entrance', `It exports "${entrance}".`, 'Export what others need from src/index.ts.')
}

/**
 * @param {string} root @param {Member} member @param {Map<string, Member>} byName packages of the workspace by npm name
 * @param {Manifest} rootManifest @param {Add} add
 */
function checkSources(root, member, byName, rootManifest, add) {
  const { folder, manifest } = member
  const files = filesBelow(root, folder, isModule)
  const floor = floorOf(member)
  if (floor === -1 && files.length > 0)
    add(
      `${folder}/package.json`,
      undefined,
      'floor-unknown',
      `"${floorWord(member)}" has no floor.`,
      'Give it one in tools/floors.mjs, with a page in docs/decisions.',
    )

  /** Packages of ours that the sources name. @type {Set<string>} */
  const named = new Set()
  /** @type {Map<string, Map<string, number>>} imported files by importing file, with the line */
  const graph = new Map()

  for (const file of files) {
    const development = isDevelopment(file.slice(folder.length + 1))
    const source = parseModule(file, readText(root, file))
    if (source.syntaxError !== undefined) add(file, undefined, 'syntax', `It does not parse: ${source.syntaxError}.`, 'Mend the syntax.')
    /** @type {Map<string, number>} */
    const edges = new Map()
    graph.set(file, edges)

    walk(source.program, (node) => {
      const line = () => source.lineOf(node.start)
      checkSyntax(node, (rule, message, hint) => add(file, line(), rule, message, hint))
      const literal = node.type === 'Literal' && typeof node.value === 'string' ? packageOf(node.value) : ''
      if (byName.has(literal)) named.add(literal)
      const specifier = specifierOf(node)
      if (specifier === undefined) return

      if (specifier.startsWith('.')) {
        const path = posix.join(posix.dirname(file), specifier)
        const target = files.includes(path) ? path : path.replace(/\.([cm]?)js$/, '.$1ts')
        if (target.startsWith(`${folder}/`)) edges.set(target, line())
        else if (!development || [...byName.values()].some((other) => target.startsWith(`${other.folder}/`)))
          add(
            file,
            line(),
            'outside',
            `It imports ${specifier}, a file outside ${folder}.`,
            'Import a package by its name, or move the file here.',
          )
        return
      }
      if (container.modules.includes(packageOf(specifier)) && file !== container.file)
        add(
          file,
          line(),
          'container',
          `It imports ${specifier}.`,
          `Ask ${container.file} for what you need; only it imports ${container.modules.join(' and ')}.`,
        )
      if (isBuiltin(specifier)) {
        if (folder === core.folder && !development)
          add(file, line(), 'core-node', `It imports ${specifier}.`, 'Move what needs Node to runtime and leave an interface in core.')
        return
      }
      const name = packageOf(specifier)
      const target = byName.get(name)
      if (target === member) {
        edges.set(`${folder}/src/index.ts`, line())
        return
      }
      if (target !== undefined) checkArrow(member, target, development, (rule, message, hint) => add(file, line(), rule, message, hint))
      if (target !== undefined && specifier !== name && target.manifest?.exports?.[`.${specifier.slice(name.length)}`] === undefined)
        add(
          file,
          line(),
          'entrance',
          `It imports ${specifier}, which ${name} does not export.`,
          `Import from "${name}", and export there what is missing.`,
        )
      if (folder === core.folder && !development && !core.dependencies.includes(name))
        add(
          file,
          line(),
          'core-dependency',
          `It imports ${specifier}.`,
          `Core may use ${core.dependencies.join(', ')} only; move what needs more to another package.`,
        )
      if (manifest !== undefined && !isDeclared(name, manifest, development, rootManifest))
        add(
          file,
          line(),
          'undeclared',
          `It imports ${name}, which ${folder}/package.json does not declare${development ? '' : ' under dependencies or peerDependencies'}.`,
          `Run in ${folder}: pnpm add ${target === undefined ? '' : '--workspace '}${development ? '--save-dev ' : ''}${name}`,
        )
    })
  }

  for (const circle of circlesOf(graph)) {
    const names = circle.map((file) => file.slice(folder.length + 1))
    add(
      circle[0] ?? folder,
      graph.get(circle[0] ?? '')?.get(circle[1] ?? ''),
      'cycle',
      `Files import each other: ${names.join(' → ')}.`,
      'Move what both need into a file of its own.',
    )
  }
  if (member.kind === 'example') return
  for (const declared of Object.keys({ ...manifest?.dependencies, ...manifest?.devDependencies }))
    if (byName.has(declared) && !named.has(declared))
      add(
        `${folder}/package.json`,
        undefined,
        'unused',
        `It declares ${declared}, which no file of it imports.`,
        `Run in ${folder}: pnpm remove ${declared}`,
      )
}

/** @param {Node} node @param {(rule: Rule, message: string, hint: string) => void} add */
function checkSyntax(node, add) {
  if (node.type === 'Decorator') add('decorator', 'A decorator.', 'Call a function instead; wiring belongs into definePlugin.')
  if (node.type === 'TSEnumDeclaration')
    add('enum', `An enum: ${node.id.name}.`, 'Write a const array or object and derive the type from it.')
  if (node.type === 'TSParameterProperty')
    add('parameter-property', 'A parameter property.', 'Declare the field and assign it in the constructor.')
}

/**
 * May `from` import `to`? At most one sentence, the most telling one.
 * @param {Member} from @param {Member} to @param {boolean} development @param {(rule: Rule, message: string, hint: string) => void} add
 */
function checkArrow(from, to, development, add) {
  const [source, target] = [floorWord(from), floorWord(to)]
  const [sourceFloor, targetFloor] = [floorOf(from), floorOf(to)]
  if (sourceFloor === -1 || targetFloor === -1) return
  const arrow = `${from.folder} imports ${to.folder}`
  if (from.kind === 'plugin') {
    const allowed = development ? [...pluginMayImport, ...testsMayImport] : pluginMayImport
    if (!allowed.includes(target))
      add('plugin-imports', `${arrow}.`, `Use ${allowed.join(', ')}; what other seams give comes through requires and optional.`)
  } else if (to.kind === 'plugin' && from.kind !== 'example') {
    add('plugin-imported', `${arrow}, a plugin.`, 'Let the configuration choose it, and reach it through its seam.')
  } else if (roles.includes(source) && roles.includes(target)) {
    add('roles', `${arrow}: one role imports another.`, 'Move the shared data type to core, and talk over a transport.')
  } else if (sourceFloor > targetFloor) {
    add(
      'floor-up',
      `${arrow}, which stands above it.`,
      'Turn the arrow round: put an interface where the lower one can see it, and fill it from above.',
    )
  } else if (sourceFloor === targetFloor && !(development && testsMayImport.includes(target))) {
    add('floor-same', `${arrow}, which stands on the same floor.`, 'Move what both need to a lower floor.')
  }
}

/** @param {string} name @param {Manifest} manifest @param {boolean} development @param {Manifest} rootManifest */
function isDeclared(name, manifest, development, rootManifest) {
  const shipped = { ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies }
  return name in shipped || (development && name in { ...manifest.devDependencies, ...rootManifest.devDependencies })
}

/**
 * Circles of imports, each a path that ends where it began; none where there are none.
 * @param {Map<string, Map<string, number>>} graph @returns {string[][]}
 */
function circlesOf(graph) {
  /** @type {string[][]} */
  const circles = []
  /** @type {Set<string>} */
  const done = new Set()
  /** @param {string} file @param {string[]} path */
  const visit = (file, path) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file])
    else if (!done.has(file)) {
      for (const target of graph.get(file)?.keys() ?? []) visit(target, [...path, file])
      done.add(file)
    }
  }
  for (const file of graph.keys()) visit(file, [])
  return circles
}

/** @param {string} root @param {Add} add */
function checkNativeLayers(root, add) {
  const isNative = (/** @type {string} */ path) => /\.(h|hpp|cuh|c|cc|cpp|cu|inl)$/.test(path) && !path.startsWith(`${binding.folder}/`)
  for (const file of filesBelow(root, 'native', isNative)) {
    for (const [index, line] of readText(root, file).split('\n').entries()) {
      const header = /^\s*#\s*include\s*[<"]([^>"]+)[>"]/.exec(line)?.[1]
      if (header !== undefined && binding.headers.includes(posix.basename(header)))
        add(file, index + 1, 'native-binding', `It includes ${header}.`, `Take a TensorView here and convert in ${binding.folder}.`)
    }
  }
}

if (isMain(import.meta.url))
  report(checkFloors(projectRoot), `floors: ${Object.keys(rules).length} rules hold for ${workspaceMembers(projectRoot).length} packages`)
