/** The flags that commands share. */
import type * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"

export const off = Flag.withDefault(false)

/** The flag of commands that continue a run. */
export const events = Flag.Boolean("json").pipe(
  Flag.withDescription("Prints the events as lines of JSON; the last line is the result"),
  off
)

/** The flag of commands that list. */
export const json = Flag.Boolean("json").pipe(Flag.withDescription("JSON, for programs"), off)

export const shared = {
  model: Flag.String("model").pipe(
    Flag.withAlias("m"),
    Flag.withMetavar("provider:model"),
    Flag.withDescription("The model, such as anthropic:claude-sonnet-5-5 or ollama:qwen3:8b"),
    Flag.optional
  ),
  agent: Flag.String("agent").pipe(
    Flag.withAlias("a"),
    Flag.withDescription("The agent, by its name (deepagents agents)"),
    Flag.optional
  ),
  cwd: Flag.Path("cwd").pipe(
    Flag.withMetavar("directory"),
    Flag.withAlias("C"),
    Flag.withDescription("The working folder; this folder by default"),
    Flag.withDefault(".")
  ),
  addDir: Flag.String("add-dir").pipe(
    Flag.withMetavar("directory[:write]"),
    Flag.withDescription("A further folder that file tools may read, or change (:write); may be repeated"),
    Flag.atLeast(0)
  ),
  thinking: Flag.Literals("thinking", ["off", "low", "medium", "high", "xhigh", "max"]).pipe(
    Flag.withDescription("How much the model thinks before it answers"),
    Flag.optional
  ),
  approvals: Flag.Literals("approvals", ["ask", "auto-edit", "plan"]).pipe(
    Flag.withDescription("The calls that ask: all changes, all but edits, or no changes at all"),
    Flag.optional
  ),
  yolo: Flag.Boolean("yolo").pipe(
    Flag.withDescription("Asks about nothing: every command runs with your rights. Only for sandboxes"),
    off
  ),
  allow: Flag.String("allow").pipe(
    Flag.withMetavar("rule"),
    Flag.withDescription("A rule for calls that run without a question, such as 'Bash(npm test:*)'; may be repeated"),
    Flag.atLeast(0)
  ),
  deny: Flag.String("deny").pipe(
    Flag.withMetavar("rule"),
    Flag.withDescription("A rule for calls that never run, such as 'Bash(git push:*)'; may be repeated"),
    Flag.atLeast(0)
  ),
  maxTurns: Flag.Int("max-turns").pipe(Flag.withDescription("Rounds of a run, at most"), Flag.optional),
  budget: Flag.Finite("budget").pipe(Flag.withDescription("US dollars that a run may cost"), Flag.optional),
  tokens: Flag.Int("tokens").pipe(Flag.withDescription("Tokens that a run may use"), Flag.optional),
  plain: Flag.Boolean("plain").pipe(
    Flag.withDescription("Lines instead of a screen: for screen readers, logs, slow terminals"),
    off
  ),
  demo: Flag.Boolean("demo").pipe(Flag.withDescription("A scripted model: no key, no network"), off),
  trust: Flag.Boolean("trust").pipe(
    Flag.withDescription(
      "Trust all items of this folder as they are now: agents, instructions, skills, servers, settings"
    ),
    off
  )
}

/** The names of the flags that every command has. */
export const sharedNames: ReadonlyArray<string> = [...Object.keys(shared), "help", "version", "completions"].map(
  (name) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
)

export type SharedFlags = Command.Command.Config.Infer<typeof shared>
