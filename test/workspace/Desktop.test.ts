/** The desktop: its tools on a fake, and the one of Linux under Xvfb with a real window. */
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { HumanInTheLoop, Taint } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { Desktop } from "effect-deepagents/workspace"

const has = (program: string): boolean => {
  try {
    execFileSync("which", [program])
    return true
  } catch {
    return false
  }
}

const helper = Agent.make({
  name: "helper",
  prompt: "",
  tools: Desktop.tools(),
  middleware: [HumanInTheLoop.make({}), Taint.make()]
})

const call = (name: string, args: Record<string, string> = {}) => TestChatModel.calls([{ name, arguments: args }])

const asks: Record<string, Record<string, string>> = {
  open_on_desktop: { target: "https://example.com/" },
  notify: { title: "t", text: "x" },
  say: { text: "x" },
  type_text: { window: "1", text: "x" },
  press_keys: { window: "1", keys: "Return" },
  write_note: { name: "n", text: "x" }
}
const free: Record<string, Record<string, string>> = {
  read_clipboard: {},
  write_clipboard: { text: "x" },
  take_screenshot: {},
  list_windows: {},
  list_notes: {},
  find_files: { words: "x" }
}

describe("the tools of a desktop", () => {
  it.effect("screenshots, lists, reads and the clipboard run at once; everything else asks", () =>
    Effect.gen(function* () {
      const names = Desktop.tools().map(({ name }) => name)
      assert.sameMembers(names, [...Object.keys(asks), ...Object.keys(free), "read_note"])
      for (const [name, args] of [...Object.entries(asks), ...Object.entries(free)]) {
        const { pending } = yield* Agent.run(helper, "go").pipe(
          Effect.provide([
            Desktop.layerFake,
            TestChatModel.reactive(({ messages }) => (messages.length === 1 ? call(name, args) : "ok"))
          ])
        )
        assert.deepStrictEqual(
          pending.map(({ toolName }) => toolName),
          name in asks ? [name] : []
        )
      }
    })
  )

  it.effect("taints the conversation with read text, so that an action asks a person", () =>
    Effect.gen(function* () {
      const { pending } = yield* Agent.run(helper, "go").pipe(
        Effect.provide([
          Desktop.layerFake,
          TestChatModel.script([call("read_clipboard"), call("open_on_desktop", { target: "/etc/passwd" })])
        ])
      )
      assert.isTrue(pending[0]?.byPerson)
    })
  )
})

/** Stubs of programs that this machine lacks: each writes down its arguments and its input. */
const stubs = (folder: string) => {
  const bin = join(folder, "bin")
  mkdirSync(bin)
  for (const name of ["xdg-open", "notify-send", "spd-say"]) {
    const file = join(bin, name)
    writeFileSync(
      file,
      `#!/bin/sh\nfor one in "$0" "$@"; do printf '[%s]' "$one"; done >> ${folder}/log\ncat >> ${folder}/log\nenv >> ${folder}/variables\n`
    )
    chmodSync(file, 0o755)
  }
  return bin
}

const makePlace = (display?: string) => {
  const folder = mkdtempSync(join(tmpdir(), "desktop-"))
  const layer = Desktop.layerLinux({ notes: join(folder, "notes"), home: folder, display }).pipe(
    Layer.provide(NodeServices.layer)
  )
  return { folder, layer }
}

describe("the desktop of Linux", () => {
  it.live("gives its programs arguments, refuses other schemes and options, and keeps notes in its folder", () => {
    const { folder, layer } = makePlace()
    // The provider of the process keeps the variables that it read first, maybe for another file.
    const env = { ...process.env, PATH: `${stubs(folder)}:${process.env["PATH"]}`, DESKTOP_TEST_KEY: "a secret" }
    return Effect.gen(function* () {
      const desk = yield* Desktop.Desktop
      yield* desk.notify({ title: "--help", text: "$(touch x)" })
      yield* desk.say("-w x")
      yield* desk.open("https://example.com/?a=$(b)")
      const log = readFileSync(join(folder, "log"), "utf8")
      const variables = readFileSync(join(folder, "variables"), "utf8")
      assert.include(variables, "PATH=")
      assert.notInclude(variables, "a secret")
      assert.include(log, "[--][--help][$(touch x)]")
      assert.match(log, /spd-say\]\[--wait\]\[--pipe-mode\]-w x/)
      for (const bad of ["--version", "file:///etc/passwd", "javascript:1", "a.txt", "https://a b"]) {
        assert.match((yield* Effect.flip(desk.open(bad))).message, /only absolute paths/)
      }
      assert.match((yield* Effect.flip(desk.say("x".repeat(1_001)))).message, /1,000/)
      assert.deepStrictEqual(yield* desk.notes, [])
      yield* desk.writeNote("Tea list", "black")
      assert.deepStrictEqual([yield* desk.notes, yield* desk.readNote("Tea list")], [["Tea list"], "black"])
      for (const bad of ["../x", ".x", "", "a/b"]) yield* Effect.flip(desk.writeNote(bad, "x"))
      writeFileSync(join(folder, "secret"), "kept")
      symlinkSync(join(folder, "secret"), join(folder, "notes/Link.md"))
      assert.match((yield* Effect.flip(desk.readNote("Link"))).message, /no regular file/)
      yield* desk.writeNote("Link", "green")
      assert.strictEqual(readFileSync(join(folder, "secret"), "utf8"), "kept")
      assert.deepStrictEqual([yield* desk.notes, yield* desk.readNote("Link")], [["Link", "Tea list"], "green"])
      assert.deepStrictEqual(readdirSync(join(folder, "notes")), ["Link.md", "Tea list.md"])
      assert.deepStrictEqual(yield* desk.find("tea"), [join(folder, "notes/Tea list.md")])
      assert.deepStrictEqual(yield* desk.find("*"), [])
      yield* Effect.flip(desk.find("/etc"))
    }).pipe(Effect.provide([layer, ConfigProvider.layer(ConfigProvider.fromEnv({ env }))]))
  })

  it.live.skipIf(!["Xvfb", "xdotool", "xclip", "zenity", "import"].every(has))(
    "fills the form of a real window and reads it back, by clipboard, keys and a picture",
    () => {
      const display = `:${500 + (process.pid % 400)}`
      const { layer } = makePlace(display)
      const server = Effect.acquireRelease(
        Effect.sync(() => spawn("Xvfb", [display, "-screen", "0", "640x480x24"], { stdio: "ignore" })),
        (child) => Effect.sync(() => child.kill())
      )
      return Effect.gen(function* () {
        yield* server
        while (!existsSync(`/tmp/.X11-unix/X${display.slice(1)}`)) yield* Effect.sleep("50 millis")
        let said = ""
        const form = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn("zenity", ["--entry", "--title", "Order", "--text", "Tea?"], {
              env: { ...process.env, DISPLAY: display }
            })
          ),
          (child) => Effect.sync(() => child.kill())
        )
        form.stdout.on("data", (data) => (said += String(data)))
        const desk = yield* Desktop.Desktop
        const find = Effect.map(desk.windows, (all) => all.find(({ title }) => title === "Order"))
        let window = yield* find
        while (window === undefined) {
          yield* Effect.sleep("200 millis")
          window = yield* find
        }
        yield* Effect.sleep("500 millis")
        const empty = yield* desk.screenshot(window.id)
        yield* desk.type(window.id, "Green tea; $(no) --x")
        let filled = empty
        while (Buffer.compare(filled, empty) === 0) {
          yield* Effect.sleep("100 millis")
          filled = yield* desk.screenshot(window.id)
        }
        assert.deepStrictEqual([...filled.subarray(1, 4)], [0x50, 0x4e, 0x47])
        yield* desk.press(window.id, "Return")
        while (said === "") yield* Effect.sleep("50 millis")
        assert.strictEqual(said.trim(), "Green tea; $(no) --x")
        yield* desk.writeClipboard("größer\n")
        assert.strictEqual(yield* desk.readClipboard, "größer\n")
        assert.isAbove((yield* desk.screenshot()).length, 100)
        yield* Effect.flip(desk.press("1; rm", "Return"))
      }).pipe(Effect.scoped, Effect.provide(layer))
    },
    60_000
  )
})
