"""Textures, surfaces, and attributes of the graphics pipeline."""

# fmt: off
TABLE = """
# mnemonic    | writes               | reads                       | effects            | meaning

# textures
FOOTPRINT     | p? 2 2               | foot.a r:foot.b? u:2?       | texture:r warp     | d, e = texels that a sample touches
FOOTPRINT.TXD | p? 2 2               | grad.a+1 grad.b u:2?        | texture:r warp     | d, e = texels that a sample with gradients touches
TEX           | p? texel.hi texel.lo | tex.a r:tex.b? u:handle?    | texture:r warp     | d, e = filtered texels
TLD           | p? texel.hi texel.lo | tex.a r:tex.b? u:handle?    | texture:r          | d, e = one texel
TLD4          | p? texel.hi texel.lo | tex4.a r:tex4.b? u:handle4? | texture:r          | d, e = one component of four texels
TMML          | p? texel.hi texel.lo | tex.a r:tex.b? u:2?         | texture:r warp     | d, e = level of detail
TXD           | p? texel.hi texel.lo | grad.a grad.b u:handle?     | texture:r          | d, e = filtered texels, gradients given
TXQ           | p? texel.hi texel.lo | query 1 u:2?                | texture:r          | d, e = property of a texture

# surfaces
SUATOM        | p? size              | [coords] size               | surface:rw ordered | d = texel, which becomes d op b
SUATOM.CAS    | p? size              | [coords] compare            | surface:rw ordered | d = texel, which becomes c if it was b: pair b, c
SULD          | p? size              | [coords]                    | surface:r          | d = texel, as bytes
SULD.P        | p? pixel             | [coords]                    | surface:r          | d = texel, formatted
SUQUERY       | p? 1                 | [coords]                    | surface:r          | d = property of a surface
SURED         |                      | [coords] size               | surface:rw ordered | texel op= b
SUST          |                      | [coords] size               | surface:w          | texel = b, as bytes
SUST.P        |                      | [coords] pixel              | surface:w          | texel = b, formatted

# attributes of the graphics pipeline
AL2P          | 1                    |                             |                    | d = physical address of an attribute
ALD           | size                 |                             | attribute:r        | d = attribute
AST           |                      | [] size                     | attribute:w        | attribute = b
IPA           | 1 p?                 |                             | attribute:r        | d = interpolated attribute
ISBERD        | 1                    |                             | attribute:r        | d = internal stage buffer
ISBEWR        |                      |                             | attribute:w        | internal stage buffer = b
LDTRAM        | ram                  |                             | attribute:r        | d = triangle memory
OUT           | 1                    |                             | pinned             | emits or cuts a vertex
OUT.FINAL     |                      | 1                           | pinned             | no more vertices
PIXLD         | 1 p?                 |                             |                    | d = property of the pixel
"""
# fmt: on
