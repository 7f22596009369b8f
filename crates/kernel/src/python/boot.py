import os,sys,types
def r(n):
    b=b''
    while len(b)<n:
        p=os.read(3,n-len(b))
        if not p: os._exit(1)
        b+=p
    return b
try: os.setpgid(0,0)
except OSError: pass
os.write(3,b'h')
m=sys.modules['haft_worker']=types.ModuleType('haft_worker')
exec(compile(r(int.from_bytes(r(4),'little')),'<haft>','exec'),m.__dict__)
m.main()
