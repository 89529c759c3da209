import { execFile } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { bundle } from "../bundle.ts"
import { isFull } from "../scale.ts"
import { makeFolder, opener, type Program, type start } from "./program.ts"

let file = ""
beforeAll(() => {
  file = bundle(new URL("children/chat.ts", import.meta.url))
}, 60_000)

const opened = opener()
const open = (args: ReadonlyArray<string>, options?: Parameters<typeof start>[1]): Program =>
  opened([file, ...args], options)

const ready = "/ commands"
const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))
/** The time after which a question takes keys, and some. */
const armed = () => pause(900)

/** Types a line once the chat is ready, and waits for these texts. */
const say = async (program: Program, line: string, ...wanted: Parameters<Program["until"]>) => {
  await program.until(ready)
  program.type(`${line}\r`)
  await program.until(...wanted)
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0

describe("the chat in a terminal", { timeout: 90_000 }, () => {
  it("changes its colours, its provider and tells the cost limit of a run", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "/theme blue", 'There is no theme "blue"; there are auto, bright, mono, none.')
    program.type("/theme mono\r")
    await program.until("colours: mono")
    program.type("/budget\r")
    await program.until("no limit in money")
    program.type("/provider nobody\r")
    await program.until('"nobody" can\'t be used; there are other.')
    program.type("/provider other\r")
    await program.until("model: other:one")
    program.type("/model nobody\r")
    await program.until('There is no model "nobody"; /model lists them.')
    program.type("/model On\r")
    await program.until((text) => count(text, /model: other:one/g) === 2)
  })

  it("streams, resizes in the middle, and leaves one transcript without clearing anything", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "stream 40", "Paragraph 6 of")
    program.resize(50, 18)
    await program.until("Paragraph 14 of")
    program.resize(100, 30)
    await program.until(ready)
    await program.until((text) => text.includes("Paragraph 39 of"))
    const text = program.text()
    for (let index = 0; index < 40; index++) {
      // A frame that is in flight at the moment of a resize may leave its open line behind, once.
      expect(count(text, new RegExp(`Paragraph ${index} of the answer has some words in it\\.`, "g"))).toBeGreaterThan(
        0
      )
    }
    expect(count(text, /Paragraph \d+ of the answer has some words in it\./g)).toBeLessThanOrEqual(42)
    expect(program.raw()).not.toMatch(/\[[23]J|\[\?1049h/)
  })

  it("works on while the terminal reads nothing, and shows all of it once when it reads again", async () => {
    const folder = makeFolder()
    const program = open([folder, "a", "--mode=auto-edit"])
    await program.until(ready)
    program.read(false)
    program.type("flood\r")
    // The file is written after an answer of 180 KB, of which a terminal takes a few.
    const until = Date.now() + 60_000
    while (!existsSync(`${folder}/files/after.txt`) && Date.now() < until) await pause(50)
    expect(existsSync(`${folder}/files/after.txt`)).toBe(true)
    expect(program.raw().length).toBeLessThan(130_000)
    program.type("typed meanwhile")
    program.read(true)
    await program.until("› typed meanwhile")
    await program.until("The tool said: Wrote")
    const shown = program.text().match(/Paragraph \d+ of the answer has some words in it\./g) ?? []
    expect(shown).toEqual(
      Array.from({ length: 3_000 }, (_, index) => `Paragraph ${index} of the answer has some words in it.`)
    )
  })

  it("keeps the partial answer when it is interrupted, and a draft and a queue through it", async () => {
    const folder = makeFolder()
    const program = open([folder, "a"])
    await say(program, "slow", "And this")
    program.type("said after\t")
    await program.until("queued: said after")
    program.type("a draft")
    await program.until("› a draft")
    program.type("\u001b")
    await program.until("interrupted; what was said is kept")
    await program.until("Enter sends what is queued")
    expect(program.text()).toContain("› a draft")
    program.type("\u0003\r")
    await program.until("You said: said after")
  })

  it("remembers the last thousand inputs, and keeps no more of them", async () => {
    const folder = makeFolder()
    const said = Array.from({ length: 3_000 }, (_, index) => `${JSON.stringify(`input ${index}`)}\n`)
    writeFileSync(`${folder}/history`, said.join(""), { mode: 0o644 })
    const program = open([folder, "a"])
    await program.until(ready)
    program.type("\u001b[A")
    await program.until("› input 2999")
    program.type("\r")
    await program.until("You said: input 2999")
    const kept = readFileSync(`${folder}/history`, "utf8").trim().split("\n")
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([1_000, '"input 2001"', '"input 2999"'])
  })

  it.runIf(isFull)("delivers lines that are typed while it works, and queues later ones", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "stream 30", "Paragraph 2 of")
    program.type("told\r")
    await program.until("told", "the queue")
    await program.until("You said: told")
    expect(count(program.text(), /› told/g)).toBe(1)
  })

  it("asks about a call: armed when nobody types, Enter is never yes, and a draft stays", async () => {
    const folder = makeFolder()
    const program = open([folder, "a"])
    await say(program, "write", "wants to call write_file")
    // Typing goes on: none of it answers.
    program.type("y\ry")
    await program.until("› yy")
    await armed()
    program.type("\r")
    await pause(100)
    expect(existsSync(`${folder}/files/made.txt`)).toBe(false)
    program.type("y")
    await program.until("The tool said: Wrote /made.txt")
    expect(readFileSync(`${folder}/files/made.txt`, "utf8")).toBe("one\ntwo\n")
    await program.until("› yy")
    expect(program.text()).toContain("+two")
  })

  it.runIf(isFull)("takes no command that begins behind a question for an answer to it", async () => {
    const folder = makeFolder()
    const program = open([folder, "a"])
    await say(program, "write", "wants to call write_file")
    await armed()
    program.type("/")
    await pause(50)
    program.type("ay")
    await program.until("› /ay")
    expect(existsSync(`${folder}/files/made.txt`)).toBe(false)
    program.type("\u007f\u007f\u007f")
    await armed()
    program.type("y")
    await program.until("The tool said: Wrote /made.txt")
  })

  it.runIf(isFull)("looks at things while it works, and changes no conversation that is at work", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "stream 150", "Paragraph 2 of")
    program.type("told\t")
    await program.until("queued: told")
    for (const name of ["undo", "redo", "rewind", "fork", "tree", "sessions", "compact", "clear"]) {
      program.type(`/${name}\r`)
      await program.until(`/${name} changes the conversation that the agent is at work on`)
    }
    program.type("/cost\r")
    await program.until("tokens in")
    expect(program.text()).not.toContain("Paragraph 149 of")
    // The queue comes after the answer, and not after the command.
    await program.until((text) => /Paragraph 149 of[^]*You said: told/.test(text))
  })

  it("takes back a turn: its words and its file, after a preview of the changes", async () => {
    const folder = makeFolder()
    const program = open([folder, "a", "--mode=auto-edit"])
    await say(program, "write", "The tool said: Wrote")
    await say(program, "/undo", "take back the words and these files?")
    expect(program.text()).toContain("-two")
    program.type("\u001b[B\r")
    await program.until("taken back (1 path): write")
    expect(existsSync(`${folder}/files/made.txt`)).toBe(false)
    program.type("\u0003/history\r")
    await pause(100)
  })

  it.runIf(isFull)("rejects with a reason, and remembers an approval for similar calls, in words", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "run", "exactly `env echo from the shell`")
    await armed()
    program.type("n")
    await program.until("Why not?")
    program.type("not now\r")
    await program.until("refused and not executed: not now")
    await say(program, "run", (text) => count(text, /wants to call execute/g) === 2)
    await armed()
    program.type("a")
    await program.until("The tool said: from the shell")
    await say(program, "run", (text) => count(text, /The tool said: from the shell/g) === 2)
    expect(count(program.text(), /wants to call execute/g)).toBe(2)
    program.type("/permissions\r")
    await program.until("by tester, in this chat")
  })

  it.runIf(isFull)(
    "decides on several calls at once, on a call with other arguments, and on all of a tool",
    async () => {
      const folder = makeFolder()
      const program = open([folder, "a"])
      await say(program, "both", (text) => count(text, /wants to call write_file/g) === 2)
      await armed()
      program.type("Y")
      await program.until("The tool said: Wrote /b.txt")
      expect([existsSync(`${folder}/files/a.txt`), existsSync(`${folder}/files/b.txt`)]).toEqual([true, true])
      await say(program, "run", "wants to call execute")
      await armed()
      program.type("e")
      await program.until('"command": "env echo from the shell"')
      program.type("\u001b[200~ \u001b[201~")
      for (let line = 0; line < 3; line++) program.type("\u0005\u0015\u007f")
      program.type('{"command": "echo from me"}\r')
      await program.until("The tool said: from me")
      await say(program, "write", (text) => count(text, /wants to call write_file/g) === 3)
      await armed()
      program.type("s")
      await program.until("The tool said: Wrote /made.txt")
      await say(program, "write", (text) => count(text, /The tool said:/g) === 4)
      expect(count(program.text(), /wants to call write_file/g)).toBe(3)
    }
  )

  it("changes nothing while a plan is made, and goes on in another mode once it is accepted", async () => {
    const folder = makeFolder()
    const program = open([folder, "a", "--mode=plan"])
    await say(program, "write", "The tool said: This call was refused")
    expect(existsSync(`${folder}/files/made.txt`)).toBe(false)
    await say(program, "plan", "carry out this plan?")
    // An answer without steps is no plan.
    expect(program.text().split("carry out this plan?")).toHaveLength(2)
    program.type("\u001b[B\u001b[B\r")
    await program.until("You said: I accept the plan.")
    await program.until("auto-edit · tester")
    program.type("write\r")
    await program.until("The tool said: Wrote")
    expect(existsSync(`${folder}/files/made.txt`)).toBe(true)
  })

  it("takes 50 KB as one chip, at once, and says all of it", async () => {
    const program = open([makeFolder(), "a"])
    await program.until(ready)
    const before = program.raw().length
    const text = Array.from({ length: 1_000 }, (_, index) => `line ${index} ${"x".repeat(40)}`).join("\n")
    program.type(`\u001b[200~${text}\u001b[201~`)
    await program.until("[paste #1 +1000 lines]")
    expect(program.raw().length - before).toBeLessThan(2_000)
    program.type("\r")
    await program.until("You said: line 0")
    await program.until("line 999")
  })

  it("resumes after a kill, with the text until then", async () => {
    const folder = makeFolder()
    const first = open([folder, "a"])
    await first.until(ready)
    first.type("slow\r")
    await first.until("And this")
    first.type("a draft")
    await first.until("› a draft")
    await pause(1_200)
    first.kill("SIGKILL")
    await first.ended
    const second = open([folder, "a", "--resume"])
    await second.until("This part was said before it was interrupted.")
    await second.until("› a draft")
    await second.until("Esc interrupts")
  })

  it("leaves by Ctrl-C twice, says how to come back, and gives the terminal back", async () => {
    const program = open([makeFolder(), "a"], { columns: 40 })
    await program.until("ask · tester")
    program.type("hello\r")
    await program.until("You said: hello")
    program.type("\u0003")
    await program.until("Ctrl+C again leaves")
    program.type("\u0003")
    expect(await program.ended).toBe(0)
    // A terminal may hand on the last of it after the end.
    await program.until("deepagents resume a")
    await program.until(() => program.raw().includes("\u001b[?2004l"), "the end of bracketed paste")
  })

  it.runIf(isFull)("has no colours if they are off, and is lines in a dumb terminal", async () => {
    const bare = open([makeFolder(), "a"], { env: { NO_COLOR: "1" } })
    await bare.until(ready)
    bare.type("code\r")
    await bare.until("Done.")
    expect(bare.raw()).not.toMatch(/\[[0-9;]*m/)
    const dumb = open([makeFolder(), "a"], { env: { TERM: "dumb" } })
    await dumb.until("> ")
    dumb.type("hello\r")
    await dumb.until("You said: hello")
    expect(dumb.raw()).not.toContain("\u001b[")
    dumb.type("write\r")
    await dumb.until("1-4:")
    dumb.type("1\r")
    await dumb.until("The tool said: Wrote")
    dumb.type("/quit\r")
    expect(await dumb.ended).toBe(0)
  })

  it.runIf(isFull)(
    "edits the draft by vim keys once they are wanted, and interrupts by Esc in their normal mode",
    async () => {
      const program = open([makeFolder(), "a"])
      await say(program, "/vim", "vim keys: Esc")
      await program.draft((text) => text.includes("insert · ask"))
      const draft = async (keys: string, wanted: string): Promise<void> => {
        for (const key of keys) program.type(key)
        // A key right behind an Esc would be a key with Alt.
        if (keys.endsWith("\u001b")) await pause(100)
        const showScreen = (text: string): string =>
          (/\n› ([^]*)\n[^\n]*· ask/.exec(text)?.[1] ?? "").replaceAll(/\n {2}/g, "|").trimEnd()
        await program.draft((text) => showScreen(text) === wanted)
      }
      await draft("one two, three\u001b", "one two, three")
      await program.draft((text) => text.includes("normal · ask"))
      await draft("0dw", "two, three")
      await draft("cwfour\u001b", "four, three")
      await draft("w", "four, three")
      await draft("x", "four three")
      await draft("p", "four ,three")
      await draft("bx", "our ,three")
      await draft("$x", "our ,thre")
      await draft("u", "our ,three")
      await draft("oline\u001b", "our ,three|line")
      await draft("kdd", "line")
      await draft("p", "line|our ,three")
      await draft("IA \u001b", "line|A our ,three")
      await draft("0elli!\u001b", "line|A our !,three")
      await draft("hdzAend\u001b", "line|A our !,threeend")
      await draft("ddddi", "")
      // The draft after an Esc that a person pressed in insert mode is not an interruption.
      program.type("slow\r")
      await program.until("And this")
      await program.draft((text) => text.includes("insert · ask"))
      program.type("\u001b")
      await program.draft((text) => text.includes("normal · ask") && text.includes("Esc interrupts"))
      program.type("\u001b")
      await program.until("interrupted; what was said is kept")
    }
  )

  it.runIf(isFull)("shows a diff once: in the question, or below the call that nobody was asked about", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "write", "wants to call write_file")
    await armed()
    program.type("y")
    await program.until("The tool said: Wrote")
    expect(count(program.text(), /^\+one$/gm)).toBe(1)
    const free = open([makeFolder(), "a", "--mode=auto-edit"])
    await say(free, "write", "The tool said: Wrote")
    expect(count(free.text(), /^\+one$/gm)).toBe(1)
  })

  it.runIf(isFull)("names a call that the person rejected once", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "write", "wants to call write_file")
    await armed()
    program.type("n")
    await program.until("Why not?")
    program.type("\r")
    await program.until("The tool said:")
    expect(program.text()).toContain("✗ rejected: write_file")
    expect(program.text()).not.toContain("✗ write_file")
  })

  it.runIf(isFull)("tells once the place of a cut-off answer when it is resumed", async () => {
    const folder = makeFolder()
    const first = open([folder, "a"])
    await say(first, "hello", "You said: hello")
    await first.until(ready)
    first.type("slow\r")
    await first.until("And this")
    await pause(300)
    first.kill("SIGKILL")
    await first.ended
    const again = open([folder, "a", "--resume"])
    await again.until("the answer was cut off here")
    await again.until("Esc interrupts")
    await pause(200)
    expect(again.text()).not.toContain("was cut off after")
  })

  it("shows the end of a turn that it is left in", async () => {
    const program = open([makeFolder(), "a"])
    await say(program, "slow", "And this")
    program.type("/quit\r")
    expect(await program.ended).toBe(0)
    // The terminal may read the last lines after the program has ended.
    await expect
      .poll(() => program.text(), { timeout: 5_000 })
      .toMatch(/And this\s+interrupted; what was said is kept · [^]*\ndeepagents resume a$/)
  })

  it("tells how to resume when lines are interrupted, and the cut-off answer when they go on", async () => {
    const folder = makeFolder()
    const first = open([folder, "a", "--plain"])
    await first.until("> ")
    first.type("slow\r")
    await first.until("This part was said")
    first.type("\u0003")
    expect(await first.ended).toBe(130)
    // The line between the paragraphs may come behind the key.
    expect(first.text()).toMatch(/\n\^C\n{1,2}deepagents resume a$/)
    const again = open([folder, "a", "--plain", "--resume"])
    await again.until("the answer was cut off here")
  })

  it.runIf(isFull)("completes commands and files of the agent", async () => {
    const program = open([makeFolder(), "a", "--mode=auto-edit"])
    await say(program, "write", "The tool said: Wrote")
    await program.until(ready)
    program.type("look at @mad")
    await program.until((text) => /› \S*made\.txt/.test(text), "the menu")
    program.type("\t")
    await program.until((text) => /› look at \S*made\.txt/.test(text), "the file")
    program.type("\u0003/stat")
    await program.until("the agent, the folder")
    program.type("\r")
    await program.until("agent tester")
  })
})

describe("the chat without a terminal", { timeout: 60_000 }, () => {
  it("reads lines and writes lines, and ends with its input", async () => {
    const out = await new Promise<string>((resolve, reject) => {
      const run = execFile(
        process.execPath,
        [file, makeFolder(), "a"],
        { cwd: tmpdir(), timeout: 50_000 },
        (error, stdout) => (error === null ? resolve(stdout) : reject(error))
      )
      run.stdin?.end("hello\nwrite\n2\nno thanks\n")
    })
    expect(out).toContain("You said: hello")
    expect(out).toContain("refused and not executed: no thanks")
    expect(out).toContain("deepagents resume a")
    expect(out).not.toContain("\u001b")
  })
})

const run = (command: string, args: ReadonlyArray<string>) =>
  new Promise<string | undefined>((resolve) => {
    execFile(command, [...args], { timeout: 10_000 }, (error, stdout) => resolve(error === null ? stdout : undefined))
  })

const hasTmux = (await run("tmux", ["-V"])) !== undefined

describe.skipIf(!hasTmux)("the chat in tmux", { timeout: 60_000 }, () => {
  it("leaves each paragraph once in the scrollback, and the shell's earlier output", async () => {
    const socket = join(makeFolder(), "tmux")
    const tmux = (...args: ReadonlyArray<string>) => run("tmux", ["-S", socket, ...args])
    const captureScreen = async () => (await tmux("capture-pane", "-p", "-S", "-", "-t", "chat")) ?? ""
    const until = async (wanted: string) => {
      for (let turn = 0; turn < 300; turn++) {
        if ((await captureScreen()).includes(wanted)) return
        await pause(100)
      }
      throw new Error(`not seen: ${wanted}\n${await captureScreen()}`)
    }
    const program = `echo before; exec ${process.execPath} ${file} ${makeFolder()} a`
    await tmux("-f", "/dev/null", "new-session", "-d", "-s", "chat", "-x", "80", "-y", "24", program)
    try {
      await until(ready)
      await tmux("send-keys", "-t", "chat", "stream 30", "Enter")
      await until("Paragraph 29 of")
      await until(ready)
      await tmux("resize-window", "-t", "chat", "-x", "60", "-y", "20")
      await pause(500)
      const text = await captureScreen()
      for (let index = 0; index < 30; index++) {
        expect([index, count(text, new RegExp(`Paragraph ${index} of`, "g"))]).toEqual([index, 1])
      }
      expect(count(text, /^before$/gm)).toBe(1)
      expect(count(text, /ask · tester/g)).toBe(1)
    } finally {
      await tmux("kill-server")
    }
  })
})
