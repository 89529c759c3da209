/**
 * Writes the skeleton of something new, with its test: `npm run new middleware RateLimit`, `npm run new tool Weather web`,
 * `npm run new provider Acme`. The skeletons are the files of `scripts/new`, which compile and pass.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

const usage = "npm run new middleware RateLimit | tool Weather web | provider Acme"
const [kind = "", name = "", folder = "workspace"] = process.argv.slice(2)
if (!/^[A-Z][A-Za-z0-9]*$/.test(name)) throw new Error(`A name such as RateLimit is missing: ${usage}`)

const lower = name.charAt(0).toLowerCase() + name.slice(1)
const snake = name.replaceAll(/(?<!^)[A-Z]/g, "_$&").toLowerCase()

/** The files of a kind, by the skeleton that each is made of. */
const kinds: { readonly [kind: string]: { readonly [skeleton: string]: string } } = {
  middleware: {
    "Middleware.ts": `src/middleware/${name}.ts`,
    "Middleware.test.ts": `test/middleware/${name}.test.ts`
  },
  tool: {
    "Tool.ts": `src/${folder}/${name}.ts`,
    "Tool.test.ts": `test/${folder}/${name}.test.ts`
  },
  provider: {
    "ProviderChatModel.ts": `src/models/${name}ChatModel.ts`,
    "provider/ask.ts": `src/models/internal/${lower}/ask.ts`,
    "provider/request.ts": `src/models/internal/${lower}/request.ts`,
    "provider/decode.ts": `src/models/internal/${lower}/decode.ts`,
    "Provider.test.ts": `test/models/${lower}.test.ts`
  }
}

const files = kinds[kind]
if (files === undefined) throw new Error(`There is no skeleton of ${JSON.stringify(kind)}: ${usage}`)
if (kind === "tool" && !existsSync(`src/${folder}/index.ts`))
  throw new Error(`src/${folder} is no folder of tools: ${usage}`)

/** Leads an import of a skeleton to where its file is now. */
const moved = (text: string, skeleton: string, target: string): string =>
  text.replaceAll(/"([.]{1,2}\/[^"]+)"/g, (_, path: string) => {
    const file = relative(".", join("scripts/new", dirname(skeleton), path))
    const place = files[relative("scripts/new", file)] ?? file
    const way = relative(dirname(target), place)
    return JSON.stringify(way.startsWith(".") ? way : `./${way}`)
  })

for (const [skeleton, target] of Object.entries(files)) {
  if (existsSync(target)) throw new Error(`${target} is there already`)
  const text = readFileSync(join("scripts/new", skeleton), "utf8")
    .replaceAll("effect-deepagents/workspace", `effect-deepagents/${folder}`)
    .replaceAll("Skeleton", name)
    .replaceAll("skeleton", kind === "tool" ? snake : lower)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, moved(text, skeleton, target))
  console.log(target)
}

const barrel =
  kind === "middleware" ? "src/middleware/index.ts" : kind === "tool" ? `src/${folder}/index.ts` : undefined
if (barrel !== undefined) {
  const [head = "", ...rest] = readFileSync(barrel, "utf8")
    .trimEnd()
    .split(/\n(?=export )/)
  const line = `export * as ${name} from "./${name}.ts"`
  writeFileSync(barrel, `${[head, ...[...rest, line].toSorted()].join("\n")}\n`)
  console.log(barrel)
}
console.log("Next: its page in docs/, its recipe in AGENTS.md, then `npm run format` and the checks.")
