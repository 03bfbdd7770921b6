// @ts-check
/**
 * A plugin from outside. Packs what strangers would get from the registry, installs it with npm into an empty folder outside of this clone,
 * and does there what an author and a user of `examples/third-party-router` do: build, pack, install, choose by configuration, test.
 *
 *   node tools/test-third-party.mjs [--keep]      with --keep the folder stays, to look at
 *
 * Needs a built clone. Packages of others come from npm's cache or its registry; where neither has them this ends with status 3 and says so.
 */
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, posix } from 'node:path'
import { readMarkdown } from './lib/markdown.mjs'
import { run, toolEnvironment } from './lib/run.mjs'
import { isMain, projectRoot, readManifest, readText, workspaceMembers } from './lib/workspace.mjs'

const example = 'examples/third-party-router'
const guide = 'docs/guides/write-a-plugin.md'
const plugin = '@acme/round-robin-router'

/** Ends the test with a status of its own: 3 for what is not available here, 130 for an interruption. */
class Stop extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** The environment of a stranger: nothing of this clone is on the path. */
function outsideEnvironment() {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(projectRoot))
  // Without a network npm would try again for a minute or more before it says so.
  const npm = { npm_config_fetch_retry_mintimeout: '1000', npm_config_fetch_retry_maxtimeout: '3000' }
  return { ...process.env, ...npm, PATH: path.join(delimiter), NO_COLOR: '1', FORCE_COLOR: undefined, NODE_PATH: undefined, CI: '1' }
}

/**
 * @typedef {object} Result
 * @property {number} status
 * @property {string} output standard output and standard error
 */

/** @param {string} folder that commands run in @param {NodeJS.ProcessEnv} env */
function commandsIn(folder, env) {
  /** Runs a command whatever its status. @param {string} line @param {string} [below] @returns {Promise<Result>} */
  const attempt = async (line, below = '.') => {
    const [command = '', ...args] = line.split(' ')
    const { status, output, end } = await run(command, args, { cwd: join(folder, below), env })
    if (end === 'signal') throw new Stop(130, `interrupted during ${line}`)
    return { status, output }
  }
  /** Runs a command that must succeed. @param {string} line @param {string} [below] @returns {Promise<string>} */
  const call = async (line, below) => {
    const { status, output } = await attempt(line, below)
    assert.equal(status, 0, `${line} ended with ${status}:\n${output}`)
    return output
  }
  /** Installs with npm, which may blame its own resolution when it is the network that fails. @param {string} what */
  const install = async (what) => {
    const { status, output } = await attempt(`npm install --prefer-offline --no-audit --no-fund --loglevel error ${what}`)
    if (status === 0) return
    const probe = await attempt('npm view zod version')
    const fault = /\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH)\b/.exec(probe.output)?.[0]
    if (fault !== undefined) throw new Stop(3, `npm reaches no registry (${fault}), and its cache lacks a package`)
    assert.fail(`npm install ended with ${status}:\n${output}`)
  }
  return { attempt, call, install }
}

/** Packages of ours that an installation of the command line and the kit needs, without those that only tests need. */
function shippedMembers() {
  const byName = new Map(workspaceMembers(projectRoot).map((member) => [member.manifest?.name, member]))
  /** @type {Set<string>} */
  const names = new Set()
  const add = (/** @type {string} */ name) => {
    if (names.has(name) || !byName.has(name)) return
    names.add(name)
    const { dependencies, peerDependencies } = byName.get(name)?.manifest ?? {}
    for (const dependency of Object.keys({ ...dependencies, ...peerDependencies })) add(dependency)
  }
  add('@trilithon/cli')
  add('@trilithon/testing')
  return [...names].sort()
}

/** What an installed package of ours must hold. @param {string} folder @param {string} version */
function checkInstalled(folder, version) {
  const manifest = readManifest(folder, '')
  const { name } = manifest
  assert.ok(!JSON.stringify(manifest).includes('workspace:'), `${name} was packed with a version of the workspace protocol`)
  for (const [dependency, range] of Object.entries({ ...manifest.dependencies }))
    if (dependency.startsWith('@trilithon/'))
      assert.equal(range, version, `${name} asks for ${dependency} in the version it was packed with`)
  const { types, default: entry } = /** @type {Record<string, string>} */ ({ .../** @type {object} */ (manifest.exports?.['.']) })
  const bins = Object.values(/** @type {{ bin?: Record<string, string> }} */ (manifest).bin ?? {})
  for (const file of [types, entry, ...bins])
    assert.ok(
      file !== undefined && existsSync(join(folder, file)),
      `${name} lacks ${file}: build the clone, or mend "files" of its package.json`,
    )
  const files = /** @type {string[]} */ (readdirSync(folder, { recursive: true, encoding: 'utf8' }))
  const tests = files.filter((/** @type {string} */ file) => /\.test\.|__fixtures__/.test(file))
  assert.deepEqual(tests, [], `${name} ships tests`)
}

/** The code block of the guide whose fence names the file after the language. @param {string} file @returns {string} */
function guideBlock(file) {
  const block = readMarkdown(readText(projectRoot, guide)).blocks.find(({ info }) => info.split(/\s+/)[1] === file)
  assert.ok(block !== undefined, `${guide} has no code block marked ${file}`)
  return `${block.code}\n`
}

/**
 * Results of vitest by folder or file of the test.
 * @typedef {{ passed: string[], failed: string[], skipped: string[] }} Cases
 * @param {string} folder @param {string} reportFile @returns {(below: string) => Cases}
 */
function readCases(folder, reportFile) {
  const { testResults } = JSON.parse(readFileSync(reportFile, 'utf8'))
  return (below) => {
    /** @type {Cases} */
    const cases = { passed: [], failed: [], skipped: [] }
    const files = testResults.filter((/** @type {{ name: string }} */ { name }) => posix.relative(folder, name).startsWith(below))
    assert.notEqual(files.length, 0, `no test file ran below ${below}`)
    for (const { name, message, assertionResults } of files) {
      assert.ok(assertionResults.length > 0, `${name} did not load: ${message}`)
      for (const { title, status } of assertionResults)
        (status === 'passed' ? cases.passed : status === 'failed' ? cases.failed : cases.skipped).push(title)
    }
    return cases
  }
}

/** @param {string} folder empty, outside of the clone @param {(title: string) => void} say */
async function testOutside(folder, say) {
  const { version } = readManifest(projectRoot, 'packages/core')
  const { devDependencies: pinned = {} } = readManifest(projectRoot, '')
  const inside = commandsIn(projectRoot, toolEnvironment())
  const { attempt, call, install } = commandsIn(folder, outsideEnvironment())
  const write = (/** @type {string} */ file, /** @type {string} */ text) => writeFileSync(join(folder, file), text)
  const read = (/** @type {string} */ file) => readFileSync(join(folder, file), 'utf8')

  // What the registry would have.
  const names = shippedMembers()
  const tarballs = join(folder, 'tarballs')
  mkdirSync(tarballs)
  await inside.call(`pnpm ${names.map((name) => `--filter ${name}`).join(' ')} pack --pack-destination ${tarballs}`)
  const packed = readdirSync(tarballs).sort()
  assert.equal(packed.length, names.length, `one tarball per package: ${packed.join(', ')}`)
  say(`packed ${packed.length} packages`)

  write('package.json', '{ "name": "somebody", "version": "1.0.0", "private": true, "type": "module" }\n')
  const tools = ['@types/node', 'typescript', 'vitest'].map((name) => `${name}@${pinned[name]}`).join(' ')
  await install(`${packed.map((file) => `./tarballs/${file}`).join(' ')} ${tools}`)
  for (const name of names) {
    const installed = realpathSync(join(folder, 'node_modules', name))
    assert.ok(installed.startsWith(folder), `${name} is installed from its tarball, not linked`)
    checkInstalled(installed, String(version))
  }
  say(`installed them with npm: versions instead of workspace:*, entries and types in place, no tests shipped`)

  const { machine, findings } = JSON.parse(await call('npx trilithon doctor --json'))
  assert.notEqual(machine, null, `the addon of the tarball does not load: ${JSON.stringify(findings)}`)
  say(
    `doctor: the addon of the tarball loads (${findings.find((/** @type {{ name: string }} */ { name }) => name === 'kernels in use')?.detail})`,
  )

  // The author: build and pack.
  const sources = { recursive: true, filter: (/** @type {string} */ path) => !/\/(node_modules|dist)$/.test(path) }
  cpSync(join(projectRoot, example), join(folder, 'author'), sources)
  await call('npx tsc -p .', 'author')
  await call('npm pack --pack-destination ..', 'author')
  say('the plugin compiles against the shipped types, and packs')

  // The user: install and choose.
  await install('./acme-round-robin-router-1.0.0.tgz')
  cpSync(join(projectRoot, example, 'orchestrator.toml'), join(folder, 'orchestrator.toml'))
  const dryRun = 'npx trilithon orchestrator @ orchestrator.toml --dry-run'
  assert.match(await call(dryRun), new RegExp(`^ *router +${plugin} +\\(installed, 1\\.0\\.0\\) +router$`, 'm'))
  const report = JSON.parse(await call(`${dryRun} --json`))
  const router = report.plugins.find((/** @type {{ seam: string }} */ { seam }) => seam === 'router')
  assert.deepEqual(router, {
    seam: 'router',
    name: plugin,
    origin: 'installed',
    version: '1.0.0',
    roles: ['orchestrator'],
    keys: ['router'],
  })
  assert.match(read(report.written[0]), /max_leases_per_worker = 64/)
  const refused = await attempt(`${dryRun} --router.max-leases-per-worker 0`)
  assert.equal(refused.status, 2, refused.output)
  assert.match(refused.output, /CONFIG_VALUE_INVALID.*--router.max-leases-per-worker/)
  say('the dry run names it, in words and in JSON, and holds its table to its own schema')

  // Whoever lists plugins runs none of them.
  const entry = `node_modules/${plugin}/dist/index.js`
  const intact = read(entry)
  write(entry, `throw new Error('the plugin ran')\n`)
  assert.match(await call('npx trilithon plugins --seam router'), new RegExp(`^router +${plugin} +installed 1\\.0\\.0`, 'm'))
  const failed = await attempt(dryRun)
  assert.equal(failed.status, 2, failed.output)
  assert.match(failed.output, /PLUGIN_LOAD_FAILED.*\n.*the plugin ran/)
  write(entry, intact)
  say('`plugins` lists it without running it')

  // The guide's local file.
  for (const file of ['my-router.mjs', 'local.toml', 'my-router.test.mjs']) write(file, guideBlock(file))
  assert.match(await call('npx trilithon rl @ local.toml --dry-run'), /^ *router +\.\/my-router\.mjs +\(local\) +orchestrator\.router$/m)
  say('the local plugin of the guide is chosen')

  // A faulty one: it forgets the workers that have failed the request.
  cpSync(join(folder, 'author'), join(folder, 'faulty'), { recursive: true })
  const source = read('faulty/src/round-robin-router.ts')
  const line = /^.*request\.exclude\.includes.*\n/m
  assert.match(source, line)
  write('faulty/src/round-robin-router.ts', source.replace(line, ''))

  // New ones.
  for (const seam of ['router', 'kv-store']) {
    await call(`npx trilithon new plugin new-${seam} --seam ${seam}`)
    await call('npx tsc -p .', `new-${seam}`)
    await call('npm run build', `new-${seam}`)
  }
  say('`new plugin` writes packages that compile')

  const { output } = await attempt('npx vitest run --reporter json --outputFile report.json')
  assert.ok(existsSync(join(folder, 'report.json')), `vitest wrote no report:\n${output}`)
  const casesOf = readCases(folder, join(folder, 'report.json'))
  for (const [below, least] of /** @type {const} */ ([
    ['author/', 20],
    ['my-router.test.mjs', 20],
  ])) {
    const { passed, failed, skipped } = casesOf(below)
    assert.deepEqual({ failed, skipped }, { failed: [], skipped: [] })
    assert.ok(passed.length > least, `${below}: ${passed.length} cases`)
    say(`${below}: ${passed.length} cases of the kit pass`)
  }
  const { failed: caught } = casesOf('faulty/')
  assert.ok(caught.includes('R3 an excluded worker is never leased'), `a plugin that forgets \`exclude\` is caught; failed: ${caught}`)
  say(`faulty/: ${caught.length} cases fail, R3 among them`)
  for (const [below, letter] of /** @type {const} */ ([
    ['new-router/', 'R'],
    ['new-kv-store/', 'K'],
  ])) {
    const { passed, failed } = casesOf(below)
    const isSentence = (/** @type {string} */ title) => new RegExp(`^${letter}\\d`).test(title)
    assert.ok(failed.length > 0 && failed.every(isSentence), `what fails is the contract alone: ${failed.join('; ')}`)
    assert.ok(
      passed.some((title) => !isSentence(title)),
      'describePlugin passes',
    )
    say(`${below}: describePlugin passes, ${failed.length} cases of the contract are left to write`)
  }
}

async function main() {
  const started = Date.now()
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trilithon-outside-')))
  const seconds = () => ((Date.now() - started) / 1000).toFixed(1)
  try {
    await testOutside(folder, (title) => console.log(`${seconds().padStart(5)} s  ${title}`))
    console.log(`a plugin from outside is built, installed, chosen and tested in ${seconds()} s`)
  } catch (error) {
    if (error instanceof Stop) {
      console.log(error.message)
      process.exitCode = error.status
    } else {
      console.error(error instanceof assert.AssertionError ? error.message : error)
      process.exitCode = 1
    }
  } finally {
    if (process.argv.includes('--keep')) console.log(`kept ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

if (isMain(import.meta.url)) await main()
