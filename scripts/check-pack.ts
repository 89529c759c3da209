/**
 * Uses the package the way a user does: packs the build, installs it in an empty folder with nothing but Effect beside
 * it, type-checks and runs the README's example there, imports every subpath, bundles them, and writes the declarations of libraries
 * that export what they made of it (`scripts/pack/`), under the last TypeScript of each kind.
 */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { buildSync } from "esbuild"
import webpack from "webpack"
import manifest from "../package.json" with { type: "json" }
import { codeBlocks } from "./markdown.ts"

/** Subpaths that can't be imported without an optional peer, and those whose types (but not their code) name one. */
const needPeers = ["./tool-selection"]
const nameLazyPeers = ["./openai", "./llama", "./bash", "./daytona", "./e2b", "./modal", "./runloop", "./vercel"]

if (!existsSync("dist/index.js")) throw new Error("dist/ is missing: run `npm run build` first.")
const example = codeBlocks(readFileSync("README.md", "utf8")).find((block) => block.heading === "Example")
if (example === undefined) throw new Error('README.md has no ```ts block under the heading "## Example".')

const folder = mkdtempSync(join(tmpdir(), "effect-deepagents-pack-"))
const run = (command: string, ...args: ReadonlyArray<string>) => {
  console.log(`$ ${command.split("/").at(-1)} ${args.join(" ")}`)
  execFileSync(command, args, { cwd: folder, stdio: ["ignore", "inherit", "inherit"], timeout: 120_000 })
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
    .join("") + `\nconsole.log(${subpaths.map((path) => `Object.keys(${path.replaceAll(/\W+/g, "_")})`).join(", ")})\n`
/** Bundles a module with esbuild and with webpack, and runs both bundles. */
const bundles = async (entry: string) => {
  buildSync({
    absWorkingDir: folder,
    entryPoints: [entry],
    bundle: true,
    platform: "node",
    format: "cjs",
    outfile: "esbuild.cjs",
    logLevel: "warning"
  })
  run(process.execPath, "esbuild.cjs")
  const { promise, reject, resolve } = Promise.withResolvers<void>()
  webpack(
    {
      mode: "development",
      devtool: false,
      target: "node22",
      context: folder,
      entry: `./${entry}`,
      output: { path: folder, filename: "webpack.cjs" }
    },
    (cause, stats) => (cause === null && stats?.hasErrors() === false ? resolve() : reject(cause ?? stats?.toString()))
  )
  await promise
  run(process.execPath, "webpack.cjs")
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
      barrel: path === "./*" ? manifest.name : `${manifest.name}${path.slice(1, -2)}`,
      name: basename(file, ".js"),
      path: `${manifest.name}${path.slice(1, -1)}${basename(file, ".js")}`
    }))
  })
  .filter(({ name, path }) => name !== "index" && !closed.has(path))

type Modules = typeof modules

const sameModules = (all: Modules) => `
import assert from "node:assert/strict"
for (const { barrel, name, path } of ${JSON.stringify(all.filter((one) => one.barrel !== `${manifest.name}/tool-selection`))}) {
  const whole = (await import(barrel))[name]
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

const compilers = [join("node_modules", "typescript", "bin", "tsc"), resolve("node_modules/typescript/bin/tsc")]
const resolutions = [
  { module: "NodeNext", moduleResolution: "NodeNext" },
  { module: "ESNext", moduleResolution: "Bundler" }
] as const

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
  for (const compiler of compilers) {
    for (const resolution of resolutions)
      compile(compiler, resolution, false, "library/library.ts", "library/wrapper.ts")
    // The types of some modules name SDKs that are not installed.
    compile(compiler, resolutions[0], true, "library/everything.ts")
  }
  const hidden = globSync(join(folder, "declared/*.d.ts")).flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/import[(]"([^"]*(?:internal|[.][.]?)[/][^"]*)"[)][.](\w+)/g)].map(
      ([, path, name]) => `${basename(file)}: ${name} of ${path}`
    )
  )
  if (hidden.length > 0) throw new Error(`Not public, but named by declarations:\n${[...new Set(hidden)].join("\n")}`)
}

try {
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder])
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }))
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
  check("example", example.code)
  const alone = subpaths.filter((path) => !needPeers.includes(path))
  check("subpaths", imports(alone.filter((path) => !nameLazyPeers.includes(path))))
  // An SDK is loaded when its model is asked for: importing a provider's module needs none.
  writeFileSync(join(folder, "lazy.mjs"), imports(nameLazyPeers))
  run(process.execPath, "lazy.mjs")

  // No SDK is installed: a bundler must not want one before it is used.
  writeFileSync(join(folder, "bundle.mjs"), imports(alone))
  await bundles("bundle.mjs")

  // node-llama-cpp is left out: hundreds of megabytes of binaries for its types alone.
  install(...["minisearch", "openai"].map(installed))
  check("with-peers", imports([...needPeers, "./openai"]))

  // Types of every module, by its own path and by the barrel's; one module has one state, whatever it is imported by.
  writeFileSync(join(folder, "modules.mjs"), sameModules(modules))
  run(process.execPath, "modules.mjs")
  install("typescript@5.9")
  declare(modules)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log("pack: the installed package type-checks and runs")
