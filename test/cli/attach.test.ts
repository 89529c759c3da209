import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { withFiles } from "../../src/cli/internal/chat/attach.ts"

describe("images of a message", () => {
  it.effect("are the files that it names: in quotes, with escaped spaces, picked; and nothing else", () =>
    Effect.gen(function* () {
      const read: Array<string> = []
      const files = FileSystem.layerNoop({
        readFile: (path) => Effect.sync(() => (read.push(path), new Uint8Array([1])))
      })
      const text =
        'Compare a.png, "my shot.PNG" and \'b c.gif\' with d\\ e.jpeg\nand @f.webp @"g h.jpg" it\'s i.png. a.pngx'
      const { message } = yield* Effect.provide(withFiles(text, "id", "/work"), [files, Path.layer])
      assert.deepStrictEqual(
        read,
        ["my shot.PNG", "b c.gif", "d e.jpeg", "f.webp", "g h.jpg"].map((name) => `/work/${name}`)
      )
      assert.deepStrictEqual(
        message.content.map(({ type }) => type),
        ["text", "image", "image", "image", "image", "image"]
      )
    })
  )
})
