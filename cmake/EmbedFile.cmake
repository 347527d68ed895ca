# Writes a file as an array of C: cmake -DINPUT=page.html -DOUTPUT=page.c -DHEADER=daemon/page.h -DNAME=fc_page -P EmbedFile.cmake
file(READ "${INPUT}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," numbers "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" numbers "${numbers}")
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\nconst unsigned char ${NAME}_bytes[] = {\n${numbers}0};\nconst size_t ${NAME}_byte_count = ${bytes};\n")
