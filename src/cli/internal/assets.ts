/** Files that come with the program. Their place differs between the sources and the build. */
import { fileURLToPath } from "node:url"

const here = import.meta.url

/** The folder of skills: each has a folder with a `SKILL.md`. */
export const skills = fileURLToPath(new URL("../skills", here))

/** The folder of templates: each has a folder. */
export const templates = fileURLToPath(
  new URL(here.endsWith(".ts") ? "../../../examples/templates" : "../templates", here)
)
