/**
 * The program `deepagents`, with all that it needs inside: whoever runs it installs nothing else, and whoever uses the
 * library installs nothing more. What is asked for later (a provider's SDK, the chat) is a file of its own.
 */
import { cpSync, existsSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { resolve } from "node:path"
import { defineConfig } from "rolldown"

/** The folder of what is built; tests build into one of their own. */
const dist = process.env["PROGRAM_DIST"] ?? "dist"

/** What the program reads: skills, and templates of projects. */
const assets = {
  name: "assets",
  writeBundle() {
    for (const [from, to] of [
      ["src/cli/skills", `${dist}/cli/skills`],
      ["examples/templates", `${dist}/cli/templates`]
    ]) {
      rmSync(to, { recursive: true, force: true })
      if (existsSync(from)) cpSync(from, to, { recursive: true })
    }
  }
}

const inPlatform = createRequire(resolve("node_modules/@effect/platform-node/package.json"))

/** `export *` of a CommonJS module has no names that a bundle could know: here they are. */
const undici = {
  name: "undici",
  load(id) {
    if (!id.endsWith("/platform-node/dist/Undici.js")) return undefined
    const names = Object.keys(inPlatform("undici")).filter(
      (name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default"
    )
    return `import Undici from "undici"\nexport const { ${names.join(", ")} } = Undici\nexport default Undici\n`
  }
}

rmSync(`${dist}/cli/program`, { recursive: true, force: true })

export default defineConfig({
  plugins: [undici, assets],
  input: { deepagents: "src/cli/bin.ts" },
  // Hundreds of megabytes of binaries, or the credentials of a cloud: who wants them installs them.
  external: [/^node-llama-cpp/, /^@anthropic-ai[/]bedrock-sdk/, "playwright-core"],
  platform: "node",
  output: {
    dir: `${dist}/cli/program`,
    format: "esm",
    minify: true,
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js"
  }
})
