/** A day of work in a real pseudo-terminal: every part of the program in one story, with three questions at most. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { serve } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { build } from "./built.ts"
import { makeModel, makeWorld } from "./day.ts"
import { start } from "./program.ts"

let built: ReturnType<typeof build>

beforeAll(() => {
  built = build()
})
afterAll(() => built.remove())

const ready = "/ commands"
const down = "\u001b[B"

describe("a day", { timeout: 300_000 }, () => {
  it.live.runIf(isFull)("of work asks three questions, and loses nothing to a crash", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const world = yield* makeWorld
        const { requests, url } = yield* serve(makeModel(world))
        const home = world.at("home")
        const open = (folder: string, ...args: ReadonlyArray<string>) =>
          Effect.acquireRelease(
            Effect.sync(() =>
              start([built.bin, ...args, "-C", world.at(folder)], {
                columns: 110,
                rows: 40,
                env: {
                  HOME: home,
                  ANTHROPIC_API_KEY: "sk-ant-test",
                  ANTHROPIC_BASE_URL: url,
                  OLLAMA_BASE_URL: "http://127.0.0.1:1",
                  PATH: `${join(home, "bin")}:${process.env["PATH"]}`,
                  GIT_SSH_COMMAND: join(home, "ssh.sh"),
                  GIT_CONFIG_NOSYSTEM: "1"
                }
              })
            ),
            (one) =>
              Effect.promise(() => {
                one.kill("SIGKILL")
                return one.ended
              })
          )
        type Program = Effect.Success<ReturnType<typeof open>>
        const until = (program: Program, wanted: string | RegExp) =>
          Effect.promise(() =>
            program.until(
              (text) => (typeof wanted === "string" ? text.includes(wanted) : wanted.test(text)),
              String(wanted)
            )
          )
        let questions = 0
        /** Says a line, answers its question if it may have one, and waits for the answer of the model. */
        const say = Effect.fnUntraced(function* (
          program: Program,
          line: string,
          wanted: string | RegExp,
          asks?: string
        ) {
          program.type(`${line}\r`)
          if (asks !== undefined) {
            yield* until(program, asks)
            questions++
            // A question takes keys when nobody types.
            yield* Effect.sleep("1 second")
            program.type("y")
          }
          yield* until(program, wanted)
          yield* Effect.promise(() => program.draft((text) => text.includes(ready)))
        })

        const first = yield* open("work")
        yield* until(first, ready)
        yield* say(first, "clone the shop", "Cloned: true", "git clone")
        first.type("\u0004")
        assert.equal(yield* Effect.promise(() => first.ended), 0)

        const chat = yield* open("work/shop", "--approvals", "auto-edit")
        yield* until(chat, "Do you trust them?")
        questions++
        chat.type(`${down}\r`)
        yield* until(chat, ready)
        yield* say(chat, "read it", "It adds prices, and has one commit.")
        yield* say(chat, "dev server, please", /The server is at port \d+/)
        const port = /The server is at port (\d+)/.exec(chat.text())?.[1] ?? ""
        const page = () => Effect.promise(() => fetch(`http://127.0.0.1:${port}`).then((response) => response.text()))
        yield* say(chat, "fix the failing test", "The test passes.")
        yield* say(chat, "types, please", "The types are right.")
        yield* say(chat, "parallel work, please", "Both parts are merged.")
        for (const part of ["one", "two"]) {
          assert.equal(readFileSync(world.at(`work/shop/${part}.txt`), "utf8"), "part\n")
          assert.isFalse(existsSync(world.at(`work/shop/.worktrees/${part}`)))
        }
        yield* say(chat, "/ps", "npm run dev")
        assert.equal(yield* page(), "shop")
        yield* say(chat, "skill: what is the word?", "The word is turnip.")
        yield* say(chat, "look at logo.png", "It is red.")
        yield* say(chat, "clean up", "Not done: The team deletes by hand.")
        assert.isTrue(existsSync(world.at("work/shop/src/sum.js")))
        chat.type("slow, tell me all\r")
        yield* until(chat, "This takes a while")
        chat.type("\u001b")
        yield* until(chat, "interrupted")
        yield* Effect.promise(() => chat.draft((text) => text.includes(ready)))

        // The program is killed while a turn that changed a file is at work.
        chat.type("note what you saw\r")
        yield* until(chat, "It is written, and now")
        const notes = world.at("work/shop/NOTES.md")
        assert.isTrue(existsSync(notes))
        yield* Effect.sleep("300 millis")
        chat.kill("SIGKILL")
        yield* Effect.promise(() => chat.ended)
        const again = yield* open("work/shop", "resume", "--approvals", "auto-edit")
        yield* until(again, "Noted.")
        yield* Effect.promise(() => again.draft((text) => text.includes(ready)))
        // The answer that was cut off is told once, and the turns before the crash are paid for still.
        assert.notInclude(again.text(), "was cut off after")
        yield* say(again, "/cost", /tokens in .* in all/)
        const [, tokens = "", kilo = ""] = /, ~?([\d.]+)(k?) in all/.exec(again.text()) ?? []
        assert.isAbove(Number(tokens) * (kilo === "" ? 1 : 1_000), 200)
        assert.isTrue(existsSync(notes))
        again.type("/undo\r")
        yield* until(again, "take back the words and these files?")
        again.type(`${down}\r`)
        yield* until(again, /taken back \(1 path/)
        assert.isFalse(existsSync(notes))
        // The words that were taken back are a draft again.
        yield* until(again, "› note what you saw")
        again.type("\u0003")
        // From here on, text from outside is in the conversation.
        yield* say(again, "server: say something", "The server said: Echo: from the day.")
        world.colleague()
        yield* say(again, "rebase on the team's work", "Rebased: true.", "git pull")

        assert.isAtMost(questions, 3)
        assert.match(readFileSync(world.at("work/shop/src/sum.js"), "utf8"), /one\.price, 0\)/)
        assert.include(world.git(world.at("work/shop"), "log", "--format=%s"), "Begin sums at 0\nSay what it is")
        // Nothing was asked that the model could not do: no call of it was refused for its form.
        assert.notInclude(JSON.stringify(requests.at(-1)?.body), "InvalidArguments")
      })
    )
  )
})
