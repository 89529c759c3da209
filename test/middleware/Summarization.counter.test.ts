import { assert, describe, it } from "@effect/vitest"
import { Content } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"

describe("the default counter", () => {
  const { media, text } = Summarization.defaultCounter
  // Counted with js-tiktoken: the lower of o200k_base (GPT-4o) and cl100k_base (GPT-4), and the higher.
  const cases: ReadonlyArray<readonly [string, string, number, number]> = [
    [
      "English",
      "The summary takes the place of the older part of the conversation, and the agent goes on from there without asking again.",
      24,
      24
    ],
    [
      "German",
      "Die Zusammenfassung ersetzt den älteren Teil der Unterhaltung, damit der Überblick erhalten bleibt.",
      17,
      25
    ],
    [
      "Russian",
      "Быстрая коричневая лиса перепрыгивает через ленивую собаку, и программа не сможет работать надёжно при больших нагрузках.",
      33,
      54
    ],
    ["Chinese", "敏捷的棕色狐狸跳过了懒狗。我们研究了问题的历史，得出的结论是必须改变模块的加载顺序。", 34, 58],
    [
      "Japanese",
      "会話の古い部分は要約に置き換えられ、新しい部分はそのまま残ります。ファイルの変更を忘れないでください。",
      37,
      52
    ],
    ["Korean", "대화의 오래된 부분은 요약으로 대체되고 새로운 부분은 그대로 남습니다.", 20, 32],
    ["Arabic", "يتم استبدال الجزء القديم من المحادثة بملخص، ويبقى الجزء الجديد كما هو.", 22, 48],
    [
      "code",
      "export const add = (left: number, right: number): number => left + right\nconst total = items.reduce((sum, item) => sum + item.price * item.count, 0)",
      41,
      41
    ],
    [
      "JSON",
      '{"path":"/src/core/Agent.ts","line":12,"matches":[{"text":"export const make","column":3}],"truncated":false}',
      31,
      33
    ],
    [
      "log",
      "2026-11-22T02:26:42.123Z ERROR [worker-3] connection to 10.0.0.12:5432 refused (attempt 4/5), retrying in 1600ms",
      49,
      49
    ],
    [
      "key",
      "aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IG9mIHNvbWUgdGV4dCB0aGF0IG5vYm9keSBoYXMgdG8gcmVhZA==aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IG9mIHNvbWUgdGV4dCB0aGF0IG5vYm9keSBoYXMgdG8gcmVhZA==aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IG9mIHNvbWUgdGV4dCB0aGF0IG5vYm9keSBoYXMgdG8gcmVhZA==",
      174,
      186
    ]
  ]
  for (const [name, value, least, most] of cases) {
    it(`is about right for ${name}`, () => {
      assert.isAtLeast(text(value), least * 0.7)
      assert.isAtMost(text(value), most * 1.3)
    })
  }

  it("knows that a picture and a document are more than their address", () => {
    assert.isAbove(media(Content.image({ url: "https://example.com/a.png" })), 500)
    assert.isAbove(media(Content.file({ base64: "A".repeat(4_000_000), mimeType: "application/pdf" })), 20_000)
    assert.isAtLeast(media(Content.file({ base64: "A".repeat(40_000), mimeType: "text/plain" })), 30_000 / 4)
  })
})
