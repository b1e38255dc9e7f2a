// placeholder while the frame is built
import { h } from "../dom.js";
export async function draw({ main }) { main.append(h("p", "…")); return {}; }
