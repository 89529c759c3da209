/** `deepagents init`: the files of a project, or a project from a template. Existing files stay. */
import { basename, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import manifest from "../../../../package.json" with { type: "json" }
import * as Assets from "../assets.ts"
import { fail, orFail } from "../failure.ts"
import { print } from "../output.ts"

const peers = manifest.peerDependencies
const developed = manifest.devDependencies

interface Template {
  readonly says: string
  readonly needs: { readonly [name: string]: string }
}

const anthropic = { "@anthropic-ai/sdk": peers["@anthropic-ai/sdk"] }
const node = { "@effect/platform-node": peers["@effect/platform-node"] }

const templates = {
  chat: { says: "a chat at the terminal with a tool; it keeps the conversation", needs: { ...anthropic, ...node } },
  research: { says: "deep research over a folder of documents", needs: { ...anthropic, ...node } },
  coder: { says: "a coder that asks before it changes anything", needs: { ...anthropic, ...node } },
  http: { says: "an HTTP endpoint that streams answers", needs: { ...anthropic, ...node } },
  worker: {
    says: "a worker that takes jobs from Postgres",
    // The socket takes exactly this version of PGlite.
    needs: {
      ...anthropic,
      ...node,
      "@effect/sql-pg": developed["@effect/sql-pg"],
      "@electric-sql/pglite": "0.5.14",
      "@electric-sql/pglite-socket": "0.2.17"
    }
  }
} as const satisfies { readonly [name: string]: Template }

export type TemplateName = keyof typeof templates

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The files of all templates. */
const around = (name: string, template: TemplateName): { readonly [path: string]: string } => ({
  "package.json": json({
    name:
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9._-]+/g, "-")
        .replace(/^[._-]+/, "") || "agent",
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: {
      start: "node --env-file-if-exists=.env src/main.ts",
      test: "node --test test/*.test.ts",
      typecheck: "tsc"
    },
    dependencies: { ...templates[template].needs, effect: peers.effect, [manifest.name]: `^${manifest.version}` },
    devDependencies: { "@types/node": developed["@types/node"], typescript: developed.typescript },
    engines: manifest.engines
  }),
  "tsconfig.json": json({
    compilerOptions: {
      target: "ES2023",
      lib: ["ES2024", "ESNext.Disposable"],
      module: "NodeNext",
      types: ["node"],
      strict: true,
      exactOptionalPropertyTypes: true,
      verbatimModuleSyntax: true,
      erasableSyntaxOnly: true,
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      noEmit: true
    },
    include: ["src", "test"]
  }),
  ".env.example": [
    "# Copy it to .env",
    "ANTHROPIC_API_KEY=",
    "# MODEL=anthropic:claude-sonnet-5-5",
    ...(template === "worker" ? ["# DATABASE_URL=postgres://postgres@localhost/agents"] : []),
    ...(template === "http" ? ["# PORT=3000"] : []),
    ""
  ].join("\n"),
  ".gitignore": ["node_modules", ".env", "*.db", "*.db-*", "jobs-db", ""].join("\n"),
  "README.md": [
    `# ${name}`,
    "",
    `This is ${templates[template].says}.`,
    "",
    "```sh",
    "npm install",
    "npm test     # with a scripted model",
    "npm start    # without a key, a script answers",
    "```",
    "",
    "For a model: `cp .env.example .env`, and write your key into `.env`. `MODEL` names another one, such as",
    "`openai:gpt-5.4-mini` (`npm install openai`) or `ollama:qwen3:8b`, which runs on this machine.",
    "",
    "The agent is in `src/agent.ts`.",
    ""
  ].join("\n")
})

const project: { readonly [path: string]: string } = {
  ".deepagents/agents/tester.md": [
    "---",
    "name: tester",
    "description: Writes a test for one behaviour, and runs it.",
    "# tools: [ls, read_file, write_file, edit_file, glob, grep, execute]",
    "# budget: { cost: 0.5 }",
    "---",
    "",
    "You write one test for the behaviour that the user names, in the style of this project.",
    "See it fail once, by breaking the code; then restore the code, and run all tests of that file.",
    "Answer with the path of the test and the command that runs it.",
    ""
  ].join("\n"),
  ".deepagents/config.json": json({ agent: "deep", approvals: "ask" }),
  "AGENTS.md": [
    "# Instructions for agents",
    "",
    "- Tests: say here how they are run.",
    "- Style: write here the rules of your reviews.",
    ""
  ].join("\n")
}

const write = Effect.fnUntraced(function* (folder: string, files: { readonly [path: string]: string }) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.forEach(Object.entries(files), ([path, text]) =>
    orFail("failed")(
      Effect.gen(function* () {
        const file = join(folder, path)
        if (yield* fs.exists(file)) return `  ${path} exists already, and stays unchanged`
        yield* fs.makeDirectory(join(file, ".."), { recursive: true })
        yield* fs.writeFileString(file, text, { flag: "wx" })
        return `  ${path}`
      })
    )
  )
})

export const initProject = Effect.fnUntraced(function* (folder: string) {
  const lines = yield* write(folder, project)
  return yield* print(...lines, "", "deepagents --trust reads them from now on; deepagents agents lists the agents.")
})

const actionFiles = [
  ".github/actions/deepagents/action.yml",
  ".github/actions/deepagents/run.mjs",
  ".github/workflows/deepagents.yml"
]

/** Writes a GitHub Action into a repository. */
export const initAction = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const texts = yield* Effect.forEach(actionFiles, (path) =>
    Effect.map(
      orFail("failed")(fs.readFileString(join(Assets.templates, "action", path))),
      (text) => [path, text.replace('"VERSION"', JSON.stringify(manifest.version))] as const
    )
  )
  return yield* print(
    ...(yield* write(resolve(folder), Object.fromEntries(texts))),
    "",
    "Keep the key of the model as the secret ANTHROPIC_API_KEY of the repository, and say in the workflow what may run."
  )
})

export const initTemplate = Effect.fnUntraced(function* (given: string, template: TemplateName) {
  const fs = yield* FileSystem.FileSystem
  const folder = resolve(given)
  const there = yield* Effect.orElseSucceed(fs.readDirectory(folder), (): ReadonlyArray<string> => [])
  if (there.some((name) => name !== ".git")) {
    return yield* fail(
      "usage",
      `${folder} is not empty; name another folder: deepagents init my-agent --template ${template}`
    )
  }
  yield* orFail("failed")(fs.makeDirectory(folder, { recursive: true }))
  yield* orFail(
    "failed",
    `${folder} can't be written: `
  )(fs.copy(join(Assets.templates, template), folder, { overwrite: true }))
  yield* write(folder, around(basename(folder), template))
  return yield* print(
    `${folder} has ${templates[template].says}.`,
    "",
    `  cd ${given}`,
    "  npm install",
    "  npm test",
    "  npm start           # a script answers until .env has a key"
  )
})
