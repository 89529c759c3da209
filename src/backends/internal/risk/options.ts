/** Options that make a program, which mostly reads, builds or fetches, write a file or run another program. */
import { valueAt } from "../../../support/json/valueAt.ts"

interface Hazard {
  readonly kind: "overwrites" | "runs"
  readonly word: string
  readonly detail: string
}

interface Hazardous {
  readonly kind: Hazard["kind"]
  /** Whole options and their beginnings: `--output` is `--output=x` and `--outp`, too. */
  readonly long?: ReadonlyArray<string>
  readonly short?: RegExp
  /** The action of the program, where it matters. */
  readonly action?: RegExp
}

const table: { readonly [program: string]: ReadonlyArray<Hazardous> } = {
  git: [
    {
      kind: "overwrites",
      long: ["--output"],
      action: /^(?:log|diff|show|stash|format-patch|diff-tree|rev-list|whatchanged)$/
    },
    { kind: "runs", long: ["--ext-diff", "--textconv", "--open-files-in-pager", "--config-env", "--exec-path"] },
    { kind: "runs", long: ["--upload-pack", "--receive-pack", "--exec"] },
    { kind: "runs", short: /^-O./, action: /^grep$/ },
    { kind: "runs", short: /^-x$/, action: /^rebase$/ }
  ],
  find: [
    { kind: "runs", short: /^-(?:exec|execdir|ok|okdir)$/ },
    { kind: "overwrites", short: /^-(?:fprint0?|fprintf|fls)$/ }
  ],
  fd: [{ kind: "runs", long: ["--exec", "--exec-batch"], short: /^-[A-Za-z]*[xX]/ }],
  sort: [
    { kind: "overwrites", long: ["--output"], short: /^-[a-zA-Z]*o/ },
    { kind: "runs", long: ["--compress-program"] }
  ],
  rg: [{ kind: "runs", long: ["--pre", "--hostname-bin"] }],
  tree: [{ kind: "overwrites", long: ["--output"], short: /^-o/ }],
  tar: [
    {
      kind: "runs",
      long: [
        "--checkpoint-action",
        "--to-command",
        "--use-compress-program",
        "--rsh-command",
        "--info-script",
        "--new-volume-script"
      ],
      short: /^-[A-Za-z]*[IF]/
    }
  ],
  npx: [{ kind: "runs", long: ["--yes", "--call", "--package"], short: /^-[A-Za-z]*[ycp]/ }],
  make: [{ kind: "runs", long: ["--eval"], short: /^(?:[A-Z]*SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS)=/ }],
  rsync: [{ kind: "runs", long: ["--rsh", "--rsync-path"], short: /^-[A-Za-z]*e/ }],
  go: [{ kind: "runs", short: /^--?(?:exec|toolexec|vettool)(?:=|$)/ }],
  docker: [{ kind: "runs", long: ["--privileged", "--volume", "--mount"], short: /^-v/ }]
}

const isLong = (word: string, options: ReadonlyArray<string>): boolean => {
  const name = word.split("=")[0] ?? ""
  return name.length > 3 && name.startsWith("--") && options.some((option) => option.startsWith(name))
}

/** The options of git that stand before its action. */
const gitSetting = (words: ReadonlyArray<string>): ReadonlyArray<Hazard> => {
  const hazards: Array<Hazard> = []
  for (let at = 1; words[at]?.startsWith("-") === true; at++) {
    const word = words[at] ?? ""
    if (word === "-c") {
      const setting = words[at + 1] ?? ""
      hazards.push({ kind: "runs", word, detail: `what the setting ${setting.split("=")[0] ?? ""} names, by git -c` })
    }
    if (/^(?:-[Cc]|--git-dir|--work-tree|--namespace|--exec-path|--config-env)$/.test(word)) at++
  }
  return hazards
}

/** Tells whether a program has such options. */
export const hasHazards = (name: string): boolean => Object.hasOwn(table, name)

/** The options of a command that write a file or run a program. `action` is the action of the program. */
export const hazardsOf = (words: ReadonlyArray<string>, action = ""): ReadonlyArray<Hazard> => {
  const first = words[0] ?? ""
  const name = first.slice(first.lastIndexOf("/") + 1)
  const entries = valueAt(table, name) ?? []
  const end = words.indexOf("--")
  // Options behind the tool belong to the tool.
  const tool = name === "npx" ? words.findIndex((word, at) => at > 0 && !word.startsWith("-")) : -1
  const rest = words.slice(1, tool !== -1 ? tool : end === -1 ? undefined : end)
  const hazards = rest.flatMap((word, at) =>
    entries.flatMap(({ action: only, kind, long = [], short }): ReadonlyArray<Hazard> => {
      if (only?.test(action) === false || !(isLong(word, long) || short?.test(word) === true)) return []
      const [option = "", value = rest[at + 1] ?? ""] = /^(--?[\w-]+|\w+)=([^]*)$/.exec(word)?.slice(1) ?? [word]
      return [{ kind, word, detail: kind === "overwrites" ? value : `what ${name} ${option} names` }]
    })
  )
  return name === "git" ? [...gitSetting(words), ...hazards] : hazards
}
