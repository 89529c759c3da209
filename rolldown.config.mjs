/**
 * The code of `dist/`: one file per import path and what they share in `dist/shared/`. Loading files is what an import
 * costs (near a millisecond each), so the modules of `src/` are not loaded one by one: the import path of a single module
 * leads to the file of its folder. The types are `tsc`'s.
 */
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { defineConfig, RolldownMagicString } from "rolldown"
import manifest from "./package.json" with { type: "json" }

/** `./middleware` → `src/middleware/index.ts`; those with a `*` are of single modules. */
const barrels = Object.entries(manifest.exports).flatMap(([path, target]) =>
  target === null || typeof target === "string" || path.includes("*") ? [] : [target["@effect-deepagents/source"]]
)

/**
 * An SDK that is not installed must not break the bundle of a user who does not use it: esbuild and webpack take an
 * import inside of a `try` for one that may be missing. One that is installed is bundled as any other.
 */
const optionalPeers = {
  name: "optional-peers",
  transform: (code) => {
    const changed = new RolldownMagicString(code).replaceAll(
      /\(\) => (import\("[^"./][^"]*"\))/g,
      "async () => { try { return await $1 } catch (cause) { throw cause } }"
    )
    return changed.hasChanged() ? { code: changed.toString(), map: changed.generateMap().toString() } : undefined
  }
}

/**
 * Programs that modules start, beside them: `Bash` runs commands in a process of its own, pages and PDFs are read in
 * threads, and scripts run in threads.
 */
const started = [
  "./src/backends/internal/bash/child.ts",
  "./src/code/internal/scriptWorker.ts",
  "./src/documents/internal/pdf/pdfWorker.ts",
  "./src/web/internal/pages/worker.ts"
]

/** Where the programs are in `dist/`, from the file that starts one: code of `src/` may lie in a shared file. */
const programs = {
  name: "programs",
  renderChunk: (code, chunk) => {
    const changed = started.reduce((text, file) => {
      const path = nameOf(file)
      const name = basename(path)
      const target = relative(dirname(chunk.fileName), `${path}.js`)
      return text.replaceAll(
        new RegExp(`"[.]/(?:[^"]*/)?${name}[.]ts"`, "g"),
        JSON.stringify(target.startsWith(".") ? target : `./${target}`)
      )
    }, new RolldownMagicString(code))
    return changed.hasChanged() ? { code: changed.toString(), map: changed.generateMap().toString() } : undefined
  }
}

const nameOf = (file) => file.replace(/^([.][/])?src[/]|[.]ts$/g, "")

/** A file that gives the exports of one module by their names, from the barrel beside it, which has them as a namespace. */
const single = (namespace, exports) => {
  const names = Object.keys(exports).toSorted()
  return [
    `import { ${namespace} } from "./index.js"`,
    `const { ${names.map((name) => `${name}: ${name}_`).join(", ")} } = ${namespace}`,
    `export { ${names.map((name) => `${name}_ as ${name}`).join(", ")} }`,
    ""
  ].join("\n")
}

/** Modules that no barrel has, for the SDK they need or the machine they run on, are entries; so are those of the core. */
const modules = globSync("src/{*,models/bridges,models/local,testing/conformance}/[A-Z]*.ts").filter((file) => {
  const barrel = `${dirname(file)}/index.ts`
  return !existsSync(barrel) || !readFileSync(barrel, "utf8").includes(`"./${basename(file)}"`)
})

const singles = {
  name: "single-modules",
  async writeBundle({ dir }) {
    for (const barrel of barrels.filter((file) => file !== "./src/index.ts")) {
      const built = resolve(dir, `${nameOf(barrel)}.js`)
      for (const [namespace, exports] of Object.entries(await import(pathToFileURL(built).href))) {
        writeFileSync(join(dirname(built), `${namespace}.js`), single(namespace, exports))
      }
    }
  }
}

/** Removes the declarations that no public declaration names: editors and compilers never read them. */
const declarations = {
  name: "declarations",
  writeBundle({ dir }) {
    const isPublic = (file) => !/[/](internal|support|cli|page)[/]|[/]core[/](loop|schema|thread)[/]/.test(file)
    const all = globSync(`${dir}/**/*.d.ts`)
    const named = new Set(all.filter(isPublic))
    // A set is walked to what is added meanwhile.
    for (const file of named) {
      for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from |import[ (])"([.][^"]+)[.](?:ts|js)"/g)) {
        named.add(join(dirname(file), `${path}.d.ts`))
      }
    }
    for (const file of all) if (!named.has(file)) rmSync(file)
  }
}

export default defineConfig({
  plugins: [optionalPeers, programs, singles, declarations],
  input: Object.fromEntries([...barrels, ...modules, ...started].map((file) => [nameOf(file), file])),
  // Whatever is imported by name is a dependency.
  external: /^[^./]/,
  platform: "neutral",
  output: {
    dir: "dist",
    format: "esm",
    // The declarations have them; bundlers need the annotations.
    comments: { legal: true, annotation: true, jsdoc: false },
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
    // `Config` is only loaded by what reads options from it.
    codeSplitting: { groups: [{ name: "core", test: /\/src\/core\/(?!Configured[.])/ }] }
  },
  treeshake: { moduleSideEffects: false }
})
