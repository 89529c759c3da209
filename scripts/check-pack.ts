/**
 * Uses the package the way a user does: packs the build, installs it in an empty folder with nothing but Effect beside
 * it, type-checks and runs the README's example there, imports every subpath, and bundles them.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
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

try {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder])
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
  const subpaths = Object.keys(manifest.exports).filter((path) => path !== "./package.json")

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
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log("pack: the installed package type-checks and runs")
