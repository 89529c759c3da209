/**
 * Uses the package the way a user does: packs the build, installs it in an empty folder with nothing but Effect beside
 * it, type-checks and runs the README's example there, imports every subpath, bundles them, runs the README's quick start
 * against a server that speaks as the provider does, and writes the declarations of libraries that export what they made
 * of it (`scripts/pack/`), under the last TypeScript of each kind.
 */
import assert from "node:assert/strict"
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { Effect } from "effect"
import { buildSync } from "esbuild"
import webpack from "webpack"
import manifest from "../package.json" with { type: "json" }
import { answer, error, type Reply, say, serve, silence, stream } from "../test/models/servers/anthropic.ts"
import { isFull } from "../test/scale.ts"
import { codeBlocks } from "./markdown.ts"
import { pack } from "./pack.ts"

/** The modules that can't be imported without an optional peer. */
const needPeers = ["./middleware/ToolSelection", "./net/NodeNetwork"]

if (!existsSync("dist/index.js")) throw new Error("dist/ is missing: run `npm run build` first.")
const blocks = codeBlocks(readFileSync("README.md", "utf8"))
const blockOf = (heading: string) => {
  const block = blocks.find((one) => one.heading === heading)
  if (block === undefined) throw new Error(`README.md has no \`\`\`ts block under the heading "## ${heading}".`)
  return block.code
}
const example = blockOf("Example")
const quickStart = blockOf("Quick start")

const folder = mkdtempSync(join(tmpdir(), "effect-deepagents-pack-"))
const run = (command: string, ...args: ReadonlyArray<string>) => {
  console.log(`$ ${command.split("/").at(-1)} ${args.join(" ")}`)
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"], timeout: 300_000 })
}
const install = (...packages: ReadonlyArray<string>) =>
  run("npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", ...packages)
const installed = (name: string) =>
  `${name}@${JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version}`
const check = (name: string, code: string) => {
  writeFileSync(join(folder, `${name}.ts`), code)
  run(resolve("node_modules/.bin/tsc"), "-p", ".")
  run(process.execPath, `${name}.ts`)
}
const imports = (subpaths: ReadonlyArray<string>) =>
  subpaths
    .map((path) => `import * as ${path.replaceAll(/\W+/g, "_")} from "${path.replace(".", manifest.name)}"\n`)
    .join("") +
  `\nconsole.log([${subpaths.map((path) => `Object.keys(${path.replaceAll(/\W+/g, "_")})`).join(", ")}].flat().length, "exports")\n`
/** What lets an ES module of esbuild hold packages that are CommonJS, as docs/models.md says. */
const withRequire = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url)`
/** Bundles a module with esbuild, to CommonJS and to an ES module, and with webpack, and runs the bundles. */
const bundles = async (name: string, code: string, banner = withRequire) => {
  const entry = `${name}.mjs`
  writeFileSync(join(folder, entry), code)
  for (const [format, outfile] of [
    ["cjs", `${name}.esbuild.cjs`],
    ["esm", `${name}.esbuild.mjs`]
  ] as const) {
    buildSync({
      absWorkingDir: folder,
      entryPoints: [entry],
      bundle: true,
      platform: "node",
      format,
      ...(format === "esm" ? { banner: { js: banner } } : {}),
      outfile,
      logLevel: "warning"
    })
    run(process.execPath, outfile)
  }
  const { promise, reject, resolve } = Promise.withResolvers<void>()
  webpack(
    {
      mode: "development",
      devtool: false,
      target: "node22",
      context: folder,
      entry: `./${entry}`,
      output: { path: folder, filename: `${name}.webpack.cjs` }
    },
    (cause, stats) => (cause === null && stats?.hasErrors() === false ? resolve() : reject(cause ?? stats?.toString()))
  )
  await promise
  run(process.execPath, `${name}.webpack.cjs`)
}

/** Imports what most programs import, and makes an agent of it: neither YAML nor RE2 is needed for that. */
const lean = `
import assert from "node:assert/strict"
import { registerHooks } from "node:module"
const loaded = []
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
await import("${manifest.name}")
await import("${manifest.name}/middleware")
const { MemoryBackend } = await import("${manifest.name}/backends")
const { DeepAgent } = await import("${manifest.name}/deep")
DeepAgent.make({ name: "a", prompt: "p", execute: true, skills: ["/skills"] })
MemoryBackend.layer()
assert.deepEqual(loaded.filter((url) => /node_modules.(yaml|re2js)/.test(url)), [])
`

/** Asks a server that is not there. */
const asking = `
import { Effect } from "effect"
import { Agent } from "effect-deepagents"
import * as ChatModels from "effect-deepagents/models/ChatModels"
const agent = Agent.make({ name: "a", prompt: "p" })
process.env.OLLAMA_BASE_URL = "http://127.0.0.1:1/v1"
const model = ChatModels.resolve("ollama:m")
Effect.runPromise(Effect.flip(Effect.provide(Agent.run(agent, "x"), model))).then((error) => {
  if (error.reason?._tag !== "Transport") throw error
})
`

/** Runs the quick start against a server with these replies; `until` is text after which it is sent Ctrl-C. */
const start = async (env: string, replies: ReadonlyArray<Reply>, until?: string) => {
  console.log(`$ node --env-file=.env quickstart.mts (${until === undefined ? env || "no key" : "Ctrl-C"})`)
  writeFileSync(join(folder, ".env"), env)
  const { HOME, PATH } = process.env
  return Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(serve(...replies), ({ requests, url }) =>
        Effect.promise(async () => {
          const child = spawn(process.execPath, ["--env-file=.env", "quickstart.mts"], {
            cwd: folder,
            env: { HOME, PATH, ANTHROPIC_BASE_URL: url },
            stdio: ["ignore", "pipe", "pipe"],
            timeout: 60_000,
            killSignal: "SIGKILL"
          })
          let out = ""
          let err = ""
          child.stdout.on("data", (chunk) => {
            out += chunk
            if (until !== undefined && out.includes(until)) child.kill("SIGINT")
          })
          child.stderr.on("data", (chunk) => (err += chunk))
          const [code, signal] = await once(child, "close")
          return { code, signal, out, err, sent: requests.map(({ raw }) => raw).join("\n") }
        })
      )
    )
  )
}

const quick = async () => {
  writeFileSync(join(folder, "quickstart.mts"), quickStart)
  const key = "ANTHROPIC_API_KEY=sk-ant-test"
  const looking = [
    { text: "I look." },
    { call: "ls", id: "toolu_1", input: { path: "/" } },
    { call: "read_file", id: "toolu_2", input: { file_path: "/.env" } }
  ]
  const busy = error(429, "rate_limit_error", "slow down", { headers: { "retry-after": "0" } })
  const good = await start(key, [busy, stream(answer(looking)), say("It is about nothing.")])
  assert.equal(good.code, 0, good.err)
  assert.match(good.out, /I look[.]\n→ ls path: \/\n[^]*It is about nothing[.]\n$/)
  assert.match(good.err, /asking again/)
  assert.match(good.sent, /quickstart[.]mts/)
  assert.doesNotMatch(good.sent, /sk-ant-test/)
  for (const [env, reply, says] of [
    ["", say("never asked"), /set ANTHROPIC_API_KEY/],
    [key, error(401, "authentication_error", "invalid x-api-key"), /check the key/]
  ] as const) {
    const bad = await start(env, [reply])
    assert.equal(bad.code, 1)
    assert.match(bad.err, says)
    assert.doesNotMatch(bad.err, /sk-ant-test|\n +at /)
  }
  const held = await start(
    key,
    [{ ...stream(answer([{ text: "So far" }]).slice(0, -3)), end: "hold" }, silence],
    "So far"
  )
  assert.equal(held.signal, "SIGINT")
}

/** What README says of the dependency tree; and that pages and examples came with the package. */
const fewPackages = () => {
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as {
    readonly packages: { readonly [path: string]: { readonly hasInstallScript?: boolean; readonly optional?: boolean } }
  }
  const names = Object.keys(packages).flatMap((path) => (path === "" ? [] : [path.replace("node_modules/", "")]))
  assert.deepEqual(names.toSorted(), ["effect", manifest.name, "re2js", "yaml"].toSorted())
  assert.ok(Object.values(packages).every(({ hasInstallScript }) => hasInstallScript !== true))
  const [, said = ""] = /(\d+) MB on disk/.exec(readFileSync("README.md", "utf8")) ?? []
  const [megabytes = ""] = execFileSync("du", ["-sm", "node_modules"], { cwd: folder, encoding: "utf8" }).split("\t")
  const isNear = Math.abs(Number(megabytes) - Number(said)) <= 10
  assert.ok(isNear, `README.md says ${said} MB on disk, and it is ${megabytes} MB`)
  const shipped = (file: string) => existsSync(join(folder, "node_modules", manifest.name, file))
  for (const file of [...globSync("docs/*.md"), ...globSync("examples/*.ts"), "llms.txt", "CHANGELOG.md"]) {
    assert.ok(shipped(file), `${file} is not in the package`)
  }
  assert.ok(!shipped("test"))
}

interface Bom {
  readonly metadata: { readonly component: { readonly "bom-ref": string } }
  readonly components: ReadonlyArray<{
    readonly "bom-ref": string
    readonly name: string
    readonly licenses?: ReadonlyArray<unknown>
    readonly hashes?: ReadonlyArray<unknown>
  }>
  readonly dependencies: ReadonlyArray<{ readonly ref: string }>
}

/** Writes the bill of materials of what a user installs, in CycloneDX, beside the package: it goes out with a release. */
const billOfMaterials = () => {
  const args = ["sbom", "--sbom-format", "cyclonedx"]
  const bom = JSON.parse(execFileSync("npm", args, { cwd: folder, encoding: "utf8", timeout: 120_000 })) as Bom
  const own = bom.components.find(({ name }) => name === manifest.name)
  assert.ok(own !== undefined)
  const components = bom.components.filter((one) => one !== own)
  assert.deepEqual(components.map(({ name }) => name).toSorted(), ["effect", "re2js", "yaml"])
  for (const { hashes = [], licenses = [], name } of components) {
    assert.ok(hashes.length > 0 && licenses.length > 0, `${name} has no hash or no licence in the bill of materials`)
  }
  const dependencies = bom.dependencies.filter(({ ref }) => ref !== bom.metadata.component["bom-ref"])
  const whole = { ...bom, metadata: { ...bom.metadata, component: own }, components, dependencies }
  writeFileSync("sbom.cdx.json", `${JSON.stringify(whole, null, 2)}\n`)
}

const closed = new Set(
  Object.entries(manifest.exports).flatMap(([path, target]) =>
    target === null ? [path.replace(".", manifest.name)] : []
  )
)

/** The import paths of single modules: what is not internal and has code in `dist/`. */
const modules = Object.entries(manifest.exports)
  .flatMap(([path, target]) => {
    if (target === null || typeof target === "string" || !path.endsWith("/*")) return []
    return globSync(target.default).map((file) => ({
      // A room of a folder may have modules and no barrel: `models/bridges`.
      barrel: path.slice(0, -2) in manifest.exports ? `${manifest.name}${path.slice(1, -2)}` : undefined,
      name: basename(file, ".js"),
      path: `${manifest.name}${path.slice(1, -1)}${basename(file, ".js")}`
    }))
  })
  .filter(({ name, path }) => name !== "index" && !closed.has(path))

type Modules = typeof modules

const sameModules = (all: Modules) => `
import assert from "node:assert/strict"
for (const { barrel, name, path } of ${JSON.stringify(all)}) {
  const whole = barrel === undefined ? undefined : (await import(barrel))[name]
  const { ...own } = await import(path)
  if (whole !== undefined) assert.deepEqual(Object.entries(own), Object.entries({ ...whole }).sort(), path)
  if (whole !== undefined) for (const key in own) assert.equal(own[key], whole[key], path + " " + key)
}
await assert.rejects(import("${manifest.name}/internal/loop"), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" })
`

/**
 * A module that gives on all that the package exports: its declarations write out every signature, as it was written and
 * as it is inferred.
 */
const everything = (all: Modules) =>
  `declare const inferred: <T>(all: T) => {
  [Key in keyof T]: T[Key] extends (...args: infer A) => infer R ? { readonly args: A; readonly result: R } : T[Key]
}
${all
  .map(
    ({ path }, index) => `import * as M${index} from "${path}"
export const written${index} = { ...M${index} }
export const inferred${index} = inferred({ ...M${index} })
`
  )
  .join("")}`

const native = resolve("node_modules/typescript/bin/tsc")
const scripted = join("node_modules", "typescript", "bin", "tsc")
const nodeNext = { module: "NodeNext", moduleResolution: "NodeNext" }
const bundler = { module: "ESNext", moduleResolution: "Bundler" }

/** Libraries that export what they made of the package, checked with their declarations, and those declarations. */
const declare = (all: Modules) => {
  const library = join(folder, "library")
  mkdirSync(library)
  cpSync("scripts/pack", library, { recursive: true })
  writeFileSync(join(library, "everything.ts"), everything(all))
  const compile = (compiler: string, resolution: object, skipLibCheck: boolean, ...include: ReadonlyArray<string>) => {
    writeFileSync(
      join(folder, "tsconfig.library.json"),
      JSON.stringify({
        compilerOptions: {
          ...resolution,
          strict: true,
          exactOptionalPropertyTypes: true,
          verbatimModuleSyntax: true,
          declaration: true,
          emitDeclarationOnly: true,
          skipLibCheck,
          rootDir: "library",
          outDir: "declared",
          target: "ES2023",
          lib: ["ES2023", "ESNext.Disposable", "DOM", "DOM.AsyncIterable"],
          types: []
        },
        include
      })
    )
    run(process.execPath, compiler, "-p", "tsconfig.library.json")
  }
  const libraries = ["library/library.ts", "library/wrapper.ts"]
  // The compiler that is written in TypeScript takes three times as long.
  compile(scripted, nodeNext, false, ...libraries)
  if (isFull) {
    compile(scripted, bundler, false, ...libraries)
    compile(scripted, nodeNext, true, "library/everything.ts")
  }
  compile(native, nodeNext, false, ...libraries)
  compile(native, bundler, false, ...libraries)
  // The types of some modules name SDKs that are not installed.
  compile(native, nodeNext, true, "library/everything.ts")
  const hidden = globSync(join(folder, "declared/*.d.ts")).flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/import[(]"([^"]*(?:internal|[.][.]?)[/][^"]*)"[)][.](\w+)/g)].map(
      ([, path, name]) => `${basename(file)}: ${name} of ${path}`
    )
  )
  if (hidden.length > 0) throw new Error(`Not public, but named by declarations:\n${[...new Set(hidden)].join("\n")}`)
  // A hover shows what a declaration does: names of decisions and events, not what they are made of.
  const spelt = /_tag: "(?:Approve|TextDelta)"/.exec(readFileSync(join(folder, "declared/library.d.ts"), "utf8"))
  if (spelt !== null) throw new Error(`Declarations write out a type that has a name: ${spelt[0]}`)
}

try {
  pack(folder)
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "user", version: "0.0.0", private: true, type: "module" })
  )
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        target: "ES2023",
        lib: ["ES2023", "ESNext.Disposable", "DOM", "DOM.AsyncIterable"],
        module: "NodeNext",
        types: []
      },
      include: ["*.ts"]
    })
  )
  const subpaths = Object.entries(manifest.exports).flatMap(([path, target]) =>
    target === null || typeof target === "string" || path.includes("*") ? [] : [path]
  )

  install(`./${manifest.name}-${manifest.version}.tgz`, installed("effect"))
  fewPackages()
  billOfMaterials()
  check("example", example)
  check("subpaths", imports(subpaths))
  writeFileSync(join(folder, "lean.mjs"), lean)
  run(process.execPath, "lean.mjs")
  // An SDK is loaded when its model is asked for: importing a provider's module needs none.
  const own = modules.map(({ path }) => path.replace(manifest.name, ".")).filter((path) => !needPeers.includes(path))
  writeFileSync(join(folder, "every-module-alone.mjs"), imports(own))
  run(process.execPath, "every-module-alone.mjs")

  // No SDK is installed: a bundler must not want one before it is used.
  await bundles("every-path", imports(subpaths))
  await bundles("every-module", imports(own))
  await bundles("core", imports(own.filter((path) => path.split("/").length === 2)), "")

  // node-llama-cpp is left out: hundreds of megabytes of binaries for its types alone.
  install(...["minisearch", "openai", "@anthropic-ai/sdk", "@effect/platform-node"].map(installed))
  await quick()
  check("with-peers", imports([...needPeers, "./models/OpenAiChatModel"]))
  // The SDK that is installed is in the bundle: the request gets as far as the network.
  await bundles("with-openai", asking)

  // Types of every module, by its own path and by the barrel's; one module has one state, whatever it is imported by.
  writeFileSync(join(folder, "modules.mjs"), sameModules(modules))
  run(process.execPath, "modules.mjs")
  install("typescript@5.9")
  declare(modules)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log("pack: the installed package type-checks and runs")
