/** Puts values in the place of the variables of configuration files, as the programs do whose files they are. */
import * as Effect from "effect/Effect"

/** Puts in the values of a text. */
export type Expand = (text: string) => Effect.Effect<string>

interface Surroundings {
  readonly dialect: "claude" | "vscode" | "cursor"
  readonly workspace: string
  readonly env: (name: string) => Effect.Effect<string | undefined>
  readonly input: (id: string) => Effect.Effect<string | undefined>
  readonly missing: (variable: string) => void
}

/** Variables as each program finds them: a default of Claude Code's may have braces that open. */
const variables = { claude: /\$\{([^}]{1,500})\}/gu, editor: /\$\{([^{}]{1,500})\}/gu }

const baseOf = (path: string): string => path.split(/[\\/]/u).findLast((part) => part !== "") ?? path

/** `${NAME}` and `${NAME:-default}`. */
const ofClaude = (variable: string, { env }: Surroundings): Effect.Effect<string | undefined> => {
  const at = variable.indexOf(":-")
  const name = at === -1 ? variable : variable.slice(0, at)
  if (!/^[A-Za-z_]\w*$/u.test(name)) return Effect.undefined
  return Effect.map(env(name), (value) => value ?? (at === -1 ? undefined : variable.slice(at + 2)))
}

/** `${env:NAME}`, `${input:id}` and the names of places. */
const ofEditor = (variable: string, around: Surroundings): Effect.Effect<string | undefined> => {
  const { env, input, workspace } = around
  if (variable.startsWith("env:")) return env(variable.slice(4))
  if (variable.startsWith("input:")) return input(variable.slice(6))
  switch (variable) {
    case "workspaceFolder":
      return Effect.succeed(workspace)
    case "workspaceFolderBasename":
      return Effect.succeed(baseOf(workspace))
    case "userHome":
      return Effect.flatMap(env("HOME"), (home) => (home === undefined ? env("USERPROFILE") : Effect.succeed(home)))
    case "pathSeparator":
    case "/":
      return Effect.succeed(workspace.includes("\\") ? "\\" : "/")
    default:
      return Effect.undefined
  }
}

/** Makes what expands texts. A variable without a value stays as it is written, and is reported. */
export const expander =
  (around: Surroundings): Expand =>
  (text) =>
    Effect.gen(function* () {
      const parts: Array<string> = []
      let end = 0
      const isClaude = around.dialect === "claude"
      for (const match of text.matchAll(isClaude ? variables.claude : variables.editor)) {
        const variable = match[1] ?? ""
        const value = yield* isClaude ? ofClaude(variable, around) : ofEditor(variable, around)
        if (value === undefined) around.missing(variable)
        parts.push(text.slice(end, match.index), value ?? match[0])
        end = match.index + match[0].length
      }
      return [...parts, text.slice(end)].join("")
    })
