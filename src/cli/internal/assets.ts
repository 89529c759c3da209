/** Files that come with the program: beside its sources, and beside what is built of them. */
import { fileURLToPath } from "node:url"

const here = import.meta.url

/** A folder with a `SKILL.md` in each of its folders. */
export const skills = fileURLToPath(new URL("../skills", here))

/** A folder with a template in each of its folders. */
export const templates = fileURLToPath(
  new URL(here.endsWith(".ts") ? "../../../examples/templates" : "../templates", here)
)
